import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import org.apache.spark.sql.api.java.UDF2;

/**
 * A probe in Java, to compare with the one in Python: probe(key, path). The file has the number of
 * blocks of 512 bits, what the seed flips in a key, and the blocks; bench.py writes it.
 */
public final class BloomProbe implements UDF2<Long, String, Boolean> {
  private static volatile BloomProbe last;
  private String path;
  private long blocks;
  private long flip;
  private LongBuffer bits;

  private static BloomProbe open(String path) throws IOException {
    BloomProbe found = last;
    if (found != null && found.path.equals(path)) {
      return found;
    }
    found = new BloomProbe();
    try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
      LongBuffer all =
          file.getChannel()
              .map(FileChannel.MapMode.READ_ONLY, 0, file.length())
              .order(ByteOrder.LITTLE_ENDIAN)
              .asLongBuffer();
      found.path = path;
      found.blocks = all.get(0);
      found.flip = all.get(1);
      found.bits = all.slice(2, all.limit() - 2);
    }
    last = found;
    return found;
  }

  @Override
  public Boolean call(Long key, String path) throws IOException {
    return key != null && open(path).has(key);
  }

  /** XXH3 of eight bytes, then one bit in each word of a block. */
  private boolean has(long key) {
    long h = Long.rotateLeft(key, 32) ^ flip;
    h ^= Long.rotateLeft(h, 49) ^ Long.rotateLeft(h, 24);
    h *= 0x9FB21C651E98DF25L;
    h ^= (h >>> 35) + 8;
    h *= 0x9FB21C651E98DF25L;
    h ^= h >>> 28;
    int block = (int) (((h >>> 32) * blocks) >>> 32) * 8;
    long x = h * 0x9E3779B97F4A7C15L;
    for (int j = 0; j < 8; j++) {
      if ((bits.get(block + j) >>> (x >>> (58 - 6 * j) & 63) & 1) == 0) {
        return false;
      }
    }
    return true;
  }
}
