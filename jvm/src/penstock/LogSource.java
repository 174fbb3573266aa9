package penstock;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.catalyst.InternalRow;
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

  private static final class LogTable extends PlannedTable {
    LogTable() {
      super("penstock log", SCHEMA, info -> new LogSink(info.options(), info.schema()));
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return new LogScanBuilder(options.get("stream"));
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
          return new PlannedStream(stream, new LogReaders(wanted.fieldNames()), PlannedTable.Part::new);
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
      return new LogReader(((PlannedTable.Part) partition).json, columns);
    }
  }
}
