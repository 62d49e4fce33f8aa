import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.function.UnaryOperator;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.NanoTime;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.apache.parquet.schema.Type;

/** Files by parquet-java, of every type, size and way of writing, below a directory: Writers DIR. */
public final class Writers {
  private static final int ROWS = System.getenv().getOrDefault("BLOOMJOIN_ALL", "").isEmpty() ? 6000 : 20_000; // as samples.py has it
  private static final int[] SIZES = {0, 1, 7, 1000, ROWS};

  private static final String FLAT =
      """
      message flat {
        required int64 id;
        optional int32 i8 (INTEGER(8,true));
        optional int32 i16 (INTEGER(16,true));
        optional int32 i32;
        optional int64 i64;
        optional int32 u8 (INTEGER(8,false));
        optional int32 u16 (INTEGER(16,false));
        optional int32 u32 (INTEGER(32,false));
        optional int64 u64 (INTEGER(64,false));
        required int32 req32;
        optional float f32;
        optional double f64;
        optional boolean flag;
        required boolean req_flag;
        optional binary text (STRING);
        required binary req_text (STRING);
        optional binary few (ENUM);
        optional binary json (JSON);
        optional binary bytes;
        optional fixed_len_byte_array(16) uuid (UUID);
        optional fixed_len_byte_array(3) fixed3;
        optional fixed_len_byte_array(2) f16 (FLOAT16);
        optional int32 dec9 (DECIMAL(9,2));
        optional int64 dec18 (DECIMAL(18,4));
        optional fixed_len_byte_array(14) dec32 (DECIMAL(32,6));
        optional binary dec_bytes (DECIMAL(20,3));
        optional int32 day (DATE);
        optional int32 time_ms (TIME(MILLIS,false));
        optional int64 time_us (TIME(MICROS,true));
        optional int64 time_ns (TIME(NANOS,true));
        optional int64 ts_ms (TIMESTAMP(MILLIS,false));
        optional int64 ts_us (TIMESTAMP(MICROS,false));
        optional int64 tz_us (TIMESTAMP(MICROS,true));
        optional int64 ts_ns (TIMESTAMP(NANOS,false));
      }
      """;

  private static final String OLD = "message old { required int64 id; optional int96 ts; required int96 req; }";

  private static final String NESTED =
      """
      message nested {
        required int64 id;
        optional group ints (LIST) { repeated group list { optional int64 element; } }
        required group words (LIST) { repeated group list { required binary element (STRING); } }
        optional group two_levels (LIST) { repeated int32 array; }
        repeated int32 bare;
        optional group deep (LIST) { repeated group list { optional group element (LIST) { repeated group list { optional int32 element; } } } }
        optional group map (MAP) { repeated group key_value { required binary key (STRING); optional int64 value; } }
        optional group pair { optional int32 a; optional group in { required binary b (STRING); repeated group items { optional int64 x; optional int32 y; } } }
      }
      """;

  /** Fills rows; the first of many are those of a few. */
  private record Source(Random random, double nulls) {
    Group row(MessageType schema, int i) {
      Group g = new SimpleGroup(schema);
      fill(g, schema);
      return g;
    }

    private void fill(Group g, GroupType type) {
      for (int f = 0; f < type.getFieldCount(); f++) {
        Type t = type.getType(f);
        int n = switch (t.getRepetition()) {
          case REQUIRED -> 1;
          case OPTIONAL -> random.nextDouble() < nulls ? 0 : 1;
          case REPEATED -> random.nextInt(4);
        };
        for (; n > 0; n--) {
          if (t.isPrimitive()) {
            add(g, f, t);
          } else {
            fill(g.addGroup(f), t.asGroupType());
          }
        }
      }
    }

    private void add(Group g, int f, Type t) {
      String name = t.getName();
      switch (t.asPrimitiveType().getPrimitiveTypeName()) {
        case BOOLEAN -> g.add(f, random.nextInt(3) == 0);
        case FLOAT -> g.add(f, (float) number());
        case DOUBLE -> g.add(f, number());
        case INT32 -> g.add(f, int32(name));
        case INT64 -> g.add(f, int64(name));
        case INT96 -> g.add(f, new NanoTime(2_440_588 + random.nextInt(20_000), random.nextLong(86_400_000_000L) * 1000));
        case BINARY -> g.add(f, binary(name));
        case FIXED_LEN_BYTE_ARRAY -> g.add(f, fixed(name, t.asPrimitiveType().getTypeLength()));
      }
    }

    private double number() {
      int i = random.nextInt(100);
      return i == 0 ? -0.0 : i == 1 ? Double.NaN : i == 2 ? Double.NEGATIVE_INFINITY : random.nextGaussian() * 1000;
    }

    private int int32(String name) {
      int v = random.nextInt();
      return switch (name) {
        case "i8" -> (byte) v;
        case "i16" -> (short) v;
        case "u8" -> v & 0xff;
        case "u16" -> v & 0xffff;
        case "dec9" -> v % 1_000_000_000;
        case "day" -> v % 20_000;
        case "time_ms" -> Math.floorMod(v, 86_400_000);
        case "a" -> Math.floorMod(v, 500);
        default -> v;
      };
    }

    private long int64(String name) {
      long v = random.nextLong();
      return switch (name) {
        case "dec18" -> v % 1_000_000_000_000_000_000L;
        case "time_us" -> Math.floorMod(v, 86_400_000_000L);
        case "time_ns" -> Math.floorMod(v, 86_400_000_000L) * 1000;
        case "ts_ms" -> v % 2_000_000_000_000L;
        case "ts_us", "tz_us" -> v % 2_000_000_000_000_000L;
        case "ts_ns" -> v % 2_000_000_000_000_000_000L;
        default -> v;
      };
    }

    private Binary binary(String name) {
      return switch (name) {
        case "few" -> Binary.fromString("few" + random.nextInt(30));
        case "json" -> Binary.fromString("{\"a\": " + random.nextInt(9) + "}");
        case "bytes" -> Binary.fromConstantByteArray(bytes(random.nextInt(8)));
        case "dec_bytes" -> Binary.fromConstantByteArray(java.math.BigInteger.valueOf(random.nextLong() / 1000).toByteArray());
        default -> Binary.fromString("ä".repeat(random.nextInt(3)) + random.nextInt(5000));
      };
    }

    private Binary fixed(String name, int length) {
      byte[] b = bytes(length);
      switch (name) {
        case "f16" -> b[1] = (byte) (b[1] & 0xbf); // finite
        case "dec32" -> b[0] = b[1] = (byte) (b[1] >> 7); // not above 32 digits
        default -> {}
      }
      return Binary.fromConstantByteArray(b);
    }

    private byte[] bytes(int n) {
      byte[] b = new byte[n];
      random.nextBytes(b);
      return b;
    }
  }

  private record Way(String name, double nulls, UnaryOperator<ExampleParquetWriter.Builder> options) {}

  private static final List<Way> WAYS =
      List.of(
          new Way("defaults", 0, b -> b),
          new Way("snappy", 0.15, b -> b.withCompressionCodec(CompressionCodecName.SNAPPY).withPageRowCountLimit(150)),
          new Way("v2", 0.15, b -> b.withWriterVersion(WriterVersion.PARQUET_2_0).withCompressionCodec(CompressionCodecName.ZSTD)),
          new Way("v2-small", 1, b -> b.withWriterVersion(WriterVersion.PARQUET_2_0).withPageSize(400).withMinRowCountForPageSizeCheck(20)
              .withMaxRowCountForPageSizeCheck(20).withCompressionCodec(CompressionCodecName.LZ4_RAW)),
          new Way("v2-plain", 0.15, b -> b.withWriterVersion(WriterVersion.PARQUET_2_0).withDictionaryEncoding(false).withPageRowCountLimit(90)),
          new Way("plain", 0.15, b -> b.withDictionaryEncoding(false).withCompressionCodec(CompressionCodecName.GZIP).withRowGroupRowCountLimit(900)),
          new Way("split", 0, b -> b.withDictionaryEncoding(false).withByteStreamSplitEncoding("f64", true).withBloomFilterEnabled("id", true)),
          new Way("overflow", 1, b -> b.withDictionaryPageSize(300).withPageSize(1000).withPageWriteChecksumEnabled(false)));

  private static void write(Path dir, String schemaText) throws IOException {
    MessageType schema = MessageTypeParser.parseMessageType(schemaText);
    Path sub = Files.createDirectories(dir.resolve(schema.getName()));
    for (Way way : WAYS) {
      for (int size : SIZES) {
        Source source = new Source(new Random(7), way.nulls);
        Path path = sub.resolve(way.name + "-" + way.nulls + "-" + size + ".parquet");
        ExampleParquetWriter.Builder builder = ExampleParquetWriter.builder(new LocalOutputFile(path))
            .withConf(new PlainParquetConfiguration()).withType(schema);
        try (var writer = way.options.apply(builder).build()) {
          for (int i = 0; i < size; i++) {
            writer.write(source.row(schema, i));
          }
        }
      }
    }
  }

  public static void main(String[] args) throws IOException {
    for (String schema : List.of(FLAT, OLD, NESTED)) {
      write(Path.of(args[0]), schema);
    }
  }
}
