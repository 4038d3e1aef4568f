//! The types that statements are made of.

use std::collections::HashMap;

/// Position in [`Types`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ty(pub usize);

#[derive(Clone, Debug)]
pub struct TypeInfo {
    pub oid: u32,
    pub name: String,
    /// Of an array.
    pub element: Option<Ty>,
    /// How often a column gets it.
    pub weight: u32,
    /// Whether there is an order, and equality.
    pub sorts: bool,
    /// The labels of an enum.
    pub labels: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Types {
    all: Vec<TypeInfo>,
    by_oid: HashMap<u32, Ty>,
}

/// Name, oid, oid of its array, weight.
const BUILTIN: [(&str, u32, u32, u32); 24] = [
    ("bool", 16, 1000, 4),
    ("int2", 21, 1005, 3),
    ("int4", 23, 1007, 10),
    ("int8", 20, 1016, 5),
    ("float4", 700, 1021, 2),
    ("float8", 701, 1022, 4),
    ("numeric", 1700, 1231, 6),
    ("text", 25, 1009, 8),
    ("varchar", 1043, 1015, 2),
    ("bpchar", 1042, 1014, 1),
    ("bytea", 17, 1001, 2),
    ("date", 1082, 1182, 4),
    ("time", 1083, 1183, 2),
    ("timetz", 1266, 1270, 1),
    ("timestamp", 1114, 1115, 4),
    ("timestamptz", 1184, 1185, 3),
    ("interval", 1186, 1187, 3),
    ("uuid", 2950, 2951, 1),
    ("json", 114, 199, 1),
    ("jsonb", 3802, 3807, 3),
    ("int4range", 3904, 3905, 2),
    ("numrange", 3906, 3907, 1),
    ("int4multirange", 4451, 6150, 1),
    ("nummultirange", 4532, 6151, 1),
];

impl Types {
    pub fn builtin() -> Types {
        let mut types = Types { all: Vec::new(), by_oid: HashMap::new() };
        for (name, oid, array, weight) in BUILTIN {
            let element = types.add(name, oid, None, weight, name != "json");
            let weight = u32::from(matches!(name, "int4" | "text" | "numeric"));
            types.add(&format!("{name}[]"), array, Some(element), weight, name != "json");
        }
        types
    }

    fn add(&mut self, name: &str, oid: u32, element: Option<Ty>, weight: u32, sorts: bool) -> Ty {
        let ty = Ty(self.all.len());
        self.all.push(TypeInfo { oid, name: name.into(), element, weight, sorts, labels: Vec::new() });
        self.by_oid.insert(oid, ty);
        ty
    }

    /// Of the built-in ones leaves those that `known` accepts by oid to be chosen; positions stay.
    pub fn retain(&mut self, known: impl Fn(u32) -> bool) {
        let all = &self.all;
        self.by_oid.retain(|oid, ty| known(*oid) || !all[ty.0].labels.is_empty());
    }

    /// An enum. Its oid differs between servers and from one set of tables to the next; here it has one that no
    /// server gives.
    pub fn add_enum(&mut self, name: &str, labels: &[&str]) -> Ty {
        let ty = self.add(name, u32::MAX - self.all.len() as u32, None, 2, true);
        self.all[ty.0].labels = labels.iter().map(ToString::to_string).collect();
        ty
    }

    pub fn info(&self, ty: Ty) -> &TypeInfo {
        &self.all[ty.0]
    }

    pub fn name(&self, ty: Ty) -> &str {
        &self.all[ty.0].name
    }

    pub fn with_oid(&self, oid: u32) -> Option<Ty> {
        self.by_oid.get(&oid).copied()
    }

    pub fn named(&self, name: &str) -> Option<Ty> {
        self.usable().find(|ty| self.name(*ty) == name)
    }

    pub fn usable(&self) -> impl Iterator<Item = Ty> + '_ {
        (0..self.all.len()).map(Ty).filter(|ty| self.by_oid.get(&self.info(*ty).oid) == Some(ty))
    }

    pub fn array_of(&self, element: Ty) -> Option<Ty> {
        self.usable().find(|ty| self.info(*ty).element == Some(element))
    }
}
