package penstock;

import java.util.EnumSet;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;

/** What Spark sees of topics of either kind: a table that is read and written by micro-batches. */
abstract class PlannedTable implements SupportsRead, SupportsWrite {
  private final String name;
  private final StructType schema;
  private final Function<LogicalWriteInfo, StreamingWrite> sink;

  PlannedTable(String name, StructType schema, Function<LogicalWriteInfo, StreamingWrite> sink) {
    this.name = name;
    this.schema = schema;
    this.sink = sink;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public StructType schema() {
    return schema;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.MICRO_BATCH_READ, TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Builder(() -> sink.apply(info));
  }

  /** What a Spark partition of a batch reads, as the planner wrote it. */
  static final class Part implements InputPartition {
    final String json;

    Part(String json) {
      this.json = json;
    }
  }

  /** Update mode is an upsert log: each new value of a key is appended. */
  private static final class Builder implements WriteBuilder, SupportsTruncate, SupportsStreamingUpdateAsAppend {
    private final Supplier<StreamingWrite> sink;

    Builder(Supplier<StreamingWrite> sink) {
      this.sink = sink;
    }

    @Override
    public WriteBuilder truncate() {
      return this;
    }

    @Override
    public Write build() {
      return new Write() {
        @Override
        public StreamingWrite toStreaming() {
          return sink.get();
        }
      };
    }
  }
}
