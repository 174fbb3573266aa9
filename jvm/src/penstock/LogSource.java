package penstock;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The embedded log as a Spark streaming source and sink: format "penstock.LogSource".
 *
 * <p>Reading needs the option `stream`; writing needs `sink`, `root` (the log's folder), `segments` (where new files go),
 * `producer` (the start of their names) and `topics` (JSON: [{"name", "partitions"}]).
 */
public final class LogSource implements TableProvider {
  static final StructType SCHEMA = new StructType()
      .add("key", "binary")
      .add("value", "binary")
      .add("timestamp", "long")
      .add("headers", "array<struct<key:string,value:binary>>")
      .add("partition", "int")
      .add("offset", "long");

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new LogTable();
  }

  private static final class LogTable implements SupportsRead, SupportsWrite {
    @Override
    public String name() {
      return "penstock log";
    }

    @Override
    public StructType schema() {
      return SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.MICRO_BATCH_READ, TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return new LogScanBuilder(options.get("stream"));
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      return new LogWriteBuilder(info.options(), info.schema());
    }
  }

  private static final class LogScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns {
    private final String stream;
    private StructType columns = SCHEMA;

    LogScanBuilder(String stream) {
      this.stream = stream;
    }

    @Override
    public void pruneColumns(StructType required) {
      columns = required;
    }

    @Override
    public Scan build() {
      StructType wanted = columns;
      return new Scan() {
        @Override
        public StructType readSchema() {
          return wanted;
        }

        @Override
        public MicroBatchStream toMicroBatchStream(String checkpoint) {
          return new PlannedStream(stream, new LogReaders(wanted.fieldNames()), LogPartition::new);
        }

        @Override
        public Scan.ColumnarSupportMode columnarSupportMode() {
          return Scan.ColumnarSupportMode.SUPPORTED;
        }

        @Override
        public String description() {
          return "penstock log " + stream;
        }
      };
    }
  }

  static final class LogPartition implements InputPartition {
    final String json;

    LogPartition(String json) {
      this.json = json;
    }
  }

  private static final class LogReaders implements PartitionReaderFactory {
    private final String[] columns;

    LogReaders(String[] columns) {
      this.columns = columns;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("columnar only");
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new LogReader(((LogPartition) partition).json, columns);
    }
  }

  /** Update mode is an upsert log: each new value of a key is appended. */
  private static final class LogWriteBuilder implements WriteBuilder, SupportsTruncate, SupportsStreamingUpdateAsAppend {
    private final CaseInsensitiveStringMap options;
    private final StructType schema;

    LogWriteBuilder(CaseInsensitiveStringMap options, StructType schema) {
      this.options = options;
      this.schema = schema;
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
          return new LogSink(options, schema);
        }
      };
    }
  }
}
