import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.api.ReadSupport;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.LocalInputFile;

/**
 * Reads files with parquet-java, checksums verified. Standard input has lines COLUMNS, tab, PATH; for each the answer is a line PATH,
 * tab, and a hash of the first COLUMNS columns of each row, separated by blanks, or what went wrong.
 */
public final class Readers {
  private static final class Builder extends ParquetReader.Builder<Group> {
    Builder(InputFile file, PlainParquetConfiguration conf) {
      super(file, conf);
    }

    @Override
    protected ReadSupport<Group> getReadSupport() {
      return new GroupReadSupport();
    }
  }

  private static int hash(Group row, int columns) {
    StringBuilder b = new StringBuilder();
    for (int f = 0; f < columns; f++) {
      for (int i = 0; i < row.getFieldRepetitionCount(f); i++) {
        b.append(f).append(':');
        b.append(row.getType().getType(f).isPrimitive() ? row.getValueToString(f, i) : row.getGroup(f, i).toString());
      }
    }
    return b.toString().hashCode();
  }

  private static String rows(Path path, int columns) {
    PlainParquetConfiguration conf = new PlainParquetConfiguration();
    conf.setBoolean("parquet.page.verify-checksum.enabled", true);
    StringBuilder b = new StringBuilder();
    try (ParquetReader<Group> reader = new Builder(new LocalInputFile(path), conf).build()) {
      for (Group row = reader.read(); row != null; row = reader.read()) {
        b.append(b.isEmpty() ? "" : " ").append(Integer.toHexString(hash(row, columns)));
      }
      return b.toString();
    } catch (IOException | RuntimeException e) {
      return "error: " + String.valueOf(e).replaceAll("\\s+", " ");
    }
  }

  public static void main(String[] args) throws IOException {
    var in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] parts = line.split("\t", 2);
      System.out.println(parts[1] + "\t" + rows(Path.of(parts[1]), Integer.parseInt(parts[0])));
    }
  }
}
