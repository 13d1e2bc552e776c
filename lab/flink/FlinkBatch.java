import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/** Sends a file of SQL statements to a session cluster as batch jobs, and waits for the last. */
public class FlinkBatch {
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("execution.target", "remote");
        configuration.setString("rest.address", arguments[4]);
        configuration.setString("rest.port", arguments[1]);
        configuration.setString("client.timeout", "180 s");
        configuration.setString("parallelism.default", arguments[2]);
        configuration.setString("pipeline.name", arguments[3]);
        TableEnvironment tables =
                TableEnvironment.create(
                        EnvironmentSettings.newInstance().inBatchMode().withConfiguration(configuration).build());
        TableResult last = null;
        for (String statement : Files.readString(Path.of(arguments[0])).split(";")) {
            if (!statement.isBlank()) {
                last = tables.executeSql(statement);
            }
        }
        last.await();
    }
}
