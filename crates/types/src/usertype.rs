//! Types that users define: composite types, enums and domains (manual 8.7, 8.16, 8.18).
//!
//! A [`crate::DataType`] carries its definition whole, so that nobody who reads or compares a value asks the
//! catalog. Two types are the same if their oids are; an anonymous record (`ROW(1, 'a')`) is the same as
//! another if its fields are.
//!
//! A composite value rests as a row ([`crate::row`]) of all its type's attributes, dropped ones as nulls; a value
//! with fewer fields than its type was written before the others were added, and reads them as nulls. An enum
//! value rests as the position of its label, a domain's value as its base type's.

use crate::row::{self, RowRef};
use crate::{DataType, Datum, PhysType, ids::ObjectId};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// `pg_type.oid` of `record`, the type of rows that no definition names.
pub const RECORD_OID: u32 = 2249;
/// Ids of catalog objects stay below this, so that the oids below can be derived from them.
const OBJECT_ID_MAX: u32 = 0x2000_0000;
const FIRST_USER_OID: u32 = 16384;

/// The oid of a table's row type.
pub fn row_type_oid(table: ObjectId) -> u32 {
    table.0 + 2 * OBJECT_ID_MAX
}

/// The table whose row type has this oid.
pub fn table_of_row_type(oid: u32) -> Option<ObjectId> {
    (2 * OBJECT_ID_MAX + FIRST_USER_OID..3 * OBJECT_ID_MAX).contains(&oid).then(|| ObjectId(oid - 2 * OBJECT_ID_MAX))
}

/// The oid of the arrays of a user's type.
pub fn array_oid(oid: u32) -> u32 {
    oid + OBJECT_ID_MAX
}

/// The user's type whose arrays have this oid.
pub fn element_oid(array: u32) -> Option<u32> {
    let of_types = (OBJECT_ID_MAX + FIRST_USER_OID..2 * OBJECT_ID_MAX).contains(&array);
    let of_rows = (3 * OBJECT_ID_MAX + FIRST_USER_OID..4 * OBJECT_ID_MAX).contains(&array);
    (of_types || of_rows).then(|| array - OBJECT_ID_MAX)
}

/// One attribute of a composite type, in the order in which they were defined.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Attribute {
    pub name: String,
    pub ty: DataType,
    #[serde(default)]
    pub dropped: bool,
    /// As [`crate::ColumnDef::time_modifier`].
    #[serde(default)]
    pub time_modifier: Option<i32>,
}

impl Attribute {
    pub fn new(name: impl Into<String>, ty: DataType) -> Attribute {
        Attribute { name: name.into(), ty, dropped: false, time_modifier: None }
    }
}

/// A composite type, a table's row type, or an anonymous record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompositeDef {
    pub oid: u32,
    /// The schema's name; empty for an anonymous record.
    pub schema: String,
    pub name: String,
    /// All that ever were, dropped ones too.
    pub attributes: Vec<Attribute>,
}

impl CompositeDef {
    /// The type of `ROW(…)`.
    pub fn anonymous(attributes: Vec<Attribute>) -> CompositeDef {
        CompositeDef { oid: RECORD_OID, schema: String::new(), name: "record".into(), attributes }
    }

    pub fn is_anonymous(&self) -> bool {
        self.oid == RECORD_OID
    }

    /// Attributes that are there, with their positions in a value.
    pub fn live(&self) -> impl DoubleEndedIterator<Item = (usize, &Attribute)> {
        self.attributes.iter().enumerate().filter(|(_, attribute)| !attribute.dropped)
    }

    pub fn attribute_named(&self, name: &str) -> Option<(usize, &Attribute)> {
        self.live().find(|(_, attribute)| attribute.name == name)
    }

    fn phys_types(&self) -> Vec<PhysType> {
        self.attributes.iter().map(|attribute| attribute.ty.phys().unwrap_or(PhysType::Bytes)).collect()
    }

    /// The value of these fields, one per attribute. `None` if one is not of its attribute's physical form.
    pub fn encode(&self, fields: &[Datum]) -> Option<Datum> {
        let types = self.phys_types();
        let fits = |(value, ty): (&Datum, &PhysType)| value.phys().is_none_or(|phys| phys == *ty);
        if fields.len() != types.len() || !fields.iter().zip(&types).all(fits) {
            return None;
        }
        let mut out = Vec::new();
        row::encode(&types, fields, &mut out);
        Some(Datum::Bytes(out.into()))
    }

    /// The fields of a value, one per attribute. `None` if its bytes are damaged.
    pub fn decode(&self, value: &[u8]) -> Option<Vec<Datum>> {
        RowRef::new(value)?.to_datums(&self.phys_types(), &vec![Datum::Null; self.attributes.len()])
    }
}

impl PartialEq for CompositeDef {
    fn eq(&self, other: &CompositeDef) -> bool {
        self.oid == other.oid && (!self.is_anonymous() || self.attributes == other.attributes)
    }
}

impl Eq for CompositeDef {}

impl Hash for CompositeDef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
    }
}

/// One label of an enum.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EnumLabel {
    pub oid: u32,
    pub label: String,
    /// What a value rests as. Never changes, so that stored values stay in order.
    #[serde(with = "crate::float_text::double")]
    pub position: f64,
    /// `pg_enum.enumsortorder`.
    #[serde(with = "crate::float_text::single")]
    pub sort_order: f32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnumDef {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// In order.
    pub labels: Vec<EnumLabel>,
}

impl EnumDef {
    pub fn label_at(&self, position: f64) -> Option<&EnumLabel> {
        let at = self.labels.binary_search_by(|label| label.position.total_cmp(&position)).ok()?;
        Some(&self.labels[at])
    }

    pub fn label_named(&self, label: &str) -> Option<&EnumLabel> {
        self.labels.iter().find(|known| known.label == label)
    }
}

impl PartialEq for EnumDef {
    fn eq(&self, other: &EnumDef) -> bool {
        self.oid == other.oid
    }
}

impl Eq for EnumDef {}

impl Hash for EnumDef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
    }
}

/// A CHECK constraint of a domain, over `VALUE`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DomainCheck {
    pub oid: u32,
    pub name: String,
    /// SQL text of the condition.
    pub sql: String,
    #[serde(default)]
    pub not_valid: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DomainDef {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// Possibly a domain itself.
    pub base: DataType,
    pub not_null: bool,
    pub checks: Vec<DomainCheck>,
    /// SQL text of `DEFAULT`.
    pub default: Option<String>,
    /// Of a base that is a date or time type, as [`crate::ColumnDef::time_modifier`].
    #[serde(default)]
    pub time_modifier: Option<i32>,
}

impl PartialEq for DomainDef {
    fn eq(&self, other: &DomainDef) -> bool {
        self.oid == other.oid
    }
}

impl Eq for DomainDef {}

impl Hash for DomainDef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.oid.hash(state);
    }
}
