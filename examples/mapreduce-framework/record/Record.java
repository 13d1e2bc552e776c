import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.v2.MiniMRYarnCluster;

/** Counts the words of FOLDER/in on a cluster in this process, once for each number of reducers. */
public class Record {
  public static class Words extends Mapper<LongWritable, Text, Text, IntWritable> {
    private final IntWritable one = new IntWritable(1);
    private final Text word = new Text();

    @Override
    public void map(LongWritable key, Text line, Context context) throws IOException, InterruptedException {
      for (String each : line.toString().split(" ")) {
        word.set(each);
        context.write(word, one);
      }
    }
  }

  public static class Sums extends Reducer<Text, IntWritable, Text, IntWritable> {
    @Override
    public void reduce(Text key, Iterable<IntWritable> values, Context context)
        throws IOException, InterruptedException {
      int sum = 0;
      for (IntWritable each : values) {
        sum += each.get();
      }
      context.write(key, new IntWritable(sum));
    }
  }

  public static void main(String[] arguments) throws Exception {
    String folder = arguments[0];
    Configuration conf = new Configuration();
    conf.set("fs.defaultFS", "file:///");
    conf.set("hadoop.tmp.dir", folder + "/tmp");
    conf.set("yarn.app.mapreduce.am.staging-dir", folder + "/staging");
    conf.setInt("yarn.nodemanager.resource.memory-mb", 3072);
    conf.setInt("yarn.scheduler.minimum-allocation-mb", 512);
    conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
    conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
    conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "99.9");
    for (String each : new String[] {"yarn.app.mapreduce.am.resource", "mapreduce.map.memory", "mapreduce.reduce.memory"}) {
      conf.setInt(each + ".mb", 512);
    }
    for (String each : new String[] {"yarn.app.mapreduce.am.command-opts", "mapreduce.map.java.opts", "mapreduce.reduce.java.opts"}) {
      conf.set(each, "-Xmx300m");
    }
    conf.set("mapreduce.application.classpath", System.getProperty("java.class.path"));
    MiniMRYarnCluster cluster = new MiniMRYarnCluster("record", 1);
    cluster.init(conf);
    cluster.start();
    for (int number = 1; number < arguments.length; number++) {
      Job job = Job.getInstance(new Configuration(cluster.getConfig()), "word count");
      job.setJar(folder + "/record.jar");
      job.setMapperClass(Words.class);
      job.setReducerClass(Sums.class);
      job.setOutputKeyClass(Text.class);
      job.setOutputValueClass(IntWritable.class);
      job.setNumReduceTasks(Integer.parseInt(arguments[number]));
      FileInputFormat.addInputPath(job, new Path("file://" + folder + "/in"));
      FileOutputFormat.setOutputPath(job, new Path("file://" + folder + "/out-" + number));
      long since = System.currentTimeMillis();
      boolean done = job.waitForCompletion(true);
      System.out.println(job.getJobID() + " " + done + " " + (System.currentTimeMillis() - since) + " ms");
    }
    Thread.sleep(5000); // until the history server has moved the histories
    cluster.stop();
    System.exit(0);
  }
}
