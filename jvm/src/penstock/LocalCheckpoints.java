package penstock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Local checkpoints: a rename replaces its target, as the contract says, and no process is forked for it.
 *
 * <p>Spark's own manager leaves a failed attempt's state file in place when a batch is replayed with other contents:
 * the state is silently wrong after the next restart.
 */
public final class LocalCheckpoints extends FileSystemBasedCheckpointFileManager {
  private static final boolean SYNC = Boolean.getBoolean("penstock.checkpoint.sync");

  public LocalCheckpoints(Path path, Configuration configuration) {
    super(path, configuration);
  }

  private static java.nio.file.Path checksum(java.nio.file.Path file) {
    return file.resolveSibling("." + file.getFileName() + ".crc");
  }

  @Override
  public void renameTempFile(Path from, Path to, boolean overwrite) {
    java.nio.file.Path source = java.nio.file.Paths.get(from.toUri().getPath());
    java.nio.file.Path target = java.nio.file.Paths.get(to.toUri().getPath());
    try {
      if (SYNC) force(source, StandardOpenOption.WRITE);
      if (!overwrite && Files.exists(target)) throw new FileAlreadyExistsException(target + " already exists");
      Files.deleteIfExists(checksum(target));
      Files.move(source, target, StandardCopyOption.ATOMIC_MOVE);
      if (Files.exists(checksum(source))) Files.move(checksum(source), checksum(target), StandardCopyOption.ATOMIC_MOVE);
      if (SYNC) force(target.getParent(), StandardOpenOption.READ);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void force(java.nio.file.Path file, StandardOpenOption how) throws IOException {
    try (FileChannel channel = FileChannel.open(file, how)) {
      channel.force(true);
    }
  }
}
