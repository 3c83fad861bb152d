//! Encodes tables and scans of Larch for other processes: as JSON after a word with which no message of Ballista
//! begins. Everything else is left to Ballista's codecs.

use crate::databases::Databases;
use crate::failure::{external, to_be_sent};
use crate::scan::{PlacedScan, PlacedSpec};
use crate::table::PlacedTable;
use crate::unread::UnreadScan;
use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use os::sync::Arc;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes before a table. No message of Ballista begins with the first of them, which would end a group that was
/// not begun.
const TABLE: &[u8] = b"larch table 1 ";

/// The bytes before a scan.
const SCAN: &[u8] = b"larch scan 1 ";

fn write(word: &[u8], what: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(word);
    serde_json::to_writer(out, what).expect("it is made of plain values");
}

/// Reads what was written after `word`, or returns `None` if the bytes do not begin with `word`.
fn read<T: DeserializeOwned>(word: &[u8], bytes: &[u8]) -> Result<Option<T>> {
    bytes.strip_prefix(word).map(|text| serde_json::from_slice(text).map_err(external)).transpose()
}

/// The codec for plans that the client sends to the scheduler.
#[derive(Debug)]
pub struct LogicalCodec {
    databases: Arc<Databases>,
    others: BallistaLogicalExtensionCodec,
}

impl LogicalCodec {
    /// A codec that finds tables in the databases `databases`.
    pub fn new(databases: &Arc<Databases>) -> Arc<Self> {
        Arc::new(Self { databases: databases.clone(), others: BallistaLogicalExtensionCodec::default() })
    }
}

impl LogicalExtensionCodec for LogicalCodec {
    fn try_decode(&self, bytes: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.others.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, out: &mut Vec<u8>) -> Result<()> {
        self.others.try_encode(node, out)
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match read(TABLE, bytes)? {
            Some(spec) => Ok(Arc::new(PlacedTable::of_spec(&spec, &self.databases).map_err(to_be_sent)?)),
            None => self.others.try_decode_table_provider(bytes, name, schema, context),
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match table.downcast_ref::<PlacedTable>() {
            Some(table) => write(TABLE, &table.spec(), out),
            None => self.others.try_encode_table_provider(name, table, out)?,
        }
        Ok(())
    }

    fn try_decode_file_format(&self, bytes: &[u8], context: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.others.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(&self, out: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.others.try_encode_file_format(out, format)
    }
}

/// The codec for tasks that the scheduler sends to executors.
#[derive(Debug)]
pub struct PhysicalCodec {
    databases: Arc<Databases>,
    others: BallistaPhysicalExtensionCodec,
}

impl PhysicalCodec {
    /// A codec that finds tables in the databases `databases`.
    pub fn new(databases: &Arc<Databases>) -> Arc<Self> {
        Arc::new(Self { databases: databases.clone(), others: BallistaPhysicalExtensionCodec::default() })
    }
}

impl PhysicalExtensionCodec for PhysicalCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(spec) = read::<PlacedSpec>(SCAN, bytes)? else {
            return self.others.try_decode(bytes, inputs, context, converter);
        };
        let [leaf] = inputs else { return plan_err!("a scan of Larch has one child, and not {}", inputs.len()) };
        let schema = spec.schema()?;
        let table = PlacedTable::of_spec(spec.table(), &self.databases);
        match table.and_then(|table| PlacedScan::of_spec(table, spec, leaf.clone())) {
            Ok(scan) => Ok(Arc::new(scan)),
            Err(error) => {
                let why = to_be_sent(error).strip_backtrace();
                let partitions = leaf.properties().output_partitioning().partition_count();
                Ok(Arc::new(UnreadScan::new(why, schema, partitions)))
            }
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        out: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<PlacedScan>() {
            Some(scan) => write(SCAN, &scan.spec(), out),
            None => self.others.try_encode(node, out, converter)?,
        }
        Ok(())
    }
}
