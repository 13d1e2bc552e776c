package com.acme.etl;

import org.apache.spark.sql.SparkSession;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;

public final class Job {
    public static void main(String[] arguments) {
        SparkSession spark = SparkSession.builder().appName("acme-etl").getOrCreate();
        JavaSparkContext context = new JavaSparkContext(spark.sparkContext());
        List<Integer> numbers = new ArrayList<>();
        for (int each = 0; each < 8; each++) numbers.add(each);
        long sum = context.parallelize(numbers, 8).map(each -> Parser.digits(8_000_000L + each)).reduce(Long::sum);
        System.out.println(sum);
        spark.stop();
    }
}
