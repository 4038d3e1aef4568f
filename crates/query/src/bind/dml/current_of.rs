//! `WHERE CURRENT OF cursor`: a condition on the place of the row (PostgreSQL manual, UPDATE).

use super::super::binder::Binder;
use super::target::Target;
use crate::error::{Result, SqlError};
use crate::plan::ColId;
use crate::syntax::{Statement, cursor_of};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum, ObjectId};

/// What the cursor that a statement names stands on.
#[derive(Debug)]
pub struct CurrentOf {
    pub cursor: String,
    /// It has FOR UPDATE or FOR SHARE.
    pub locks: bool,
    /// Rows of tables by tablet and key.
    pub rows: Vec<(ObjectId, i64, Vec<u8>)>,
}

/// The cursor that UPDATE or DELETE names.
pub fn current_of(statement: &Statement) -> Option<String> {
    match statement {
        Statement::Update(update) => cursor_of(update.selection.as_ref()?),
        Statement::Delete(delete) => cursor_of(delete.selection.as_ref()?),
        _ => None,
    }
}

impl Binder<'_> {
    /// The condition that the target's row is the cursor's; false while a statement is only described.
    pub(super) fn current_of(&mut self, target: &Target, identity: [ColId; 3]) -> Result<Expr> {
        if target.view.is_some() {
            return Err(SqlError::not_supported("WHERE CURRENT OF on a view is not implemented"));
        }
        let Some(current) = self.ctx.current.clone() else { return Ok(Expr::bool(false)) };
        let table = &target.table;
        let mut rows = current.rows.iter().filter(|(id, ..)| *id == table.id);
        let (cursor, name) = (&current.cursor, &table.name);
        let (tablet, key) = match (rows.next(), rows.next()) {
            (Some((_, tablet, key)), None) => (*tablet, key),
            (found, _) => {
                let message = match (current.locks, found) {
                    (true, None) => {
                        format!("cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{name}\"")
                    }
                    (true, Some(_)) => {
                        format!("cursor \"{cursor}\" has multiple FOR UPDATE/SHARE references to table \"{name}\"")
                    }
                    (false, _) => format!("cursor \"{cursor}\" is not a simply updatable scan of table \"{name}\""),
                };
                return Err(SqlError::new("24000", message));
            }
        };
        let [tablet_id, key_id, _] = identity;
        let key = Expr::Const { value: Datum::Bytes(key.as_slice().into()), ty: DataType::Bytea };
        let same = [
            self.operator("=", Some(Expr::Hole { id: tablet_id, ty: DataType::Int8 }), Expr::int8(tablet))?,
            self.operator("=", Some(Expr::Hole { id: key_id, ty: DataType::Bytea }), key)?,
        ];
        Ok(Expr::and(same.to_vec()))
    }
}
