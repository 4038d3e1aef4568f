//! Object ids: given once, even if what they were given to is the last thing the log says.

use super::*;

#[tokio::test]
async fn ids_of_types_and_of_their_parts_are_not_given_again() {
    let domain = |oid| {
        let checks = vec![DomainCheck { oid, name: "c".into(), sql: "VALUE > 0".into(), not_valid: false }];
        TypeKind::Domain { base: DataType::Int4, not_null: false, checks, default: None, time_modifier: None }
    };
    let labels = |oid| TypeKind::Enum(vec![EnumLabel { oid, label: "a".into(), position: 1.0, sort_order: 1.0 }]);
    let kinds: [&dyn Fn(u32) -> TypeKind; 3] = [&|_| TypeKind::Composite(Vec::new()), &domain, &labels];
    for (at, kind) in kinds.into_iter().enumerate() {
        let f = Fixture::new();
        let id = f.engine.next_object_id();
        let greatest = if at == 0 { id } else { f.engine.next_object_id() };
        let def = TypeDef {
            id,
            namespace: catalog::PUBLIC,
            name: "d".into(),
            owner: "basalt".into(),
            kind: kind(greatest.0),
            revision: Revision::NEW,
        };
        let mut txn = f.begin();
        txn.edit_catalog(vec![CatalogEdit::PutType(Arc::new(def))]).unwrap();
        txn.commit().await.unwrap();
        let f = f.reopen();
        assert!(f.engine.next_object_id() > greatest, "{:?}", f.engine.catalog().types[&id].kind);
    }
}
