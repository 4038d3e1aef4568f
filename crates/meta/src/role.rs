//! Roles, and settings that come with them and with databases.

use basalt_types::{ObjectId, Revision};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Role {
    pub id: ObjectId,
    pub name: String,
    pub superuser: bool,
    pub login: bool,
    /// SCRAM-SHA-256 verifier in PostgreSQL's text form; `None`: no password.
    pub password: Option<String>,
    #[serde(default)]
    pub create_db: bool,
    #[serde(default)]
    pub create_role: bool,
    #[serde(default = "yes")]
    pub inherit: bool,
    #[serde(default)]
    pub replication: bool,
    #[serde(default)]
    pub bypass_rls: bool,
    /// Sessions at a time; -1: no limit.
    #[serde(default = "no_limit")]
    pub connections_max: i32,
    /// Microseconds since 1970-01-01 UTC after which the password is not taken.
    #[serde(default)]
    pub valid_until_micros: Option<i64>,
    /// Roles that this one is a member of, with or without the right to let others in.
    #[serde(default)]
    pub member_of: Vec<Membership>,
    #[serde(skip, default = "Revision::kept")]
    pub revision: Revision,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Membership {
    pub role: ObjectId,
    pub admin: bool,
    pub grantor: ObjectId,
}

fn yes() -> bool {
    true
}

fn no_limit() -> i32 {
    -1
}

impl Role {
    /// One that may do nothing yet, not even log in.
    pub fn new(id: ObjectId, name: &str) -> Role {
        Role {
            id,
            name: name.to_string(),
            superuser: false,
            login: false,
            password: None,
            create_db: false,
            create_role: false,
            inherit: true,
            replication: false,
            bypass_rls: false,
            connections_max: -1,
            valid_until_micros: None,
            member_of: Vec::new(),
            revision: Revision::NEW,
        }
    }
}

impl Role {
    /// Whether VALID UNTIL has not passed; afterwards no password is right.
    pub fn password_is_valid(&self, now_micros: i64) -> bool {
        self.valid_until_micros.is_none_or(|until| now_micros < until)
    }
}

/// A value that sessions of a role, in a database, or both, start with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RoleSetting {
    /// `None`: in every database.
    pub database: Option<ObjectId>,
    /// `None`: for every role.
    pub role: Option<ObjectId>,
    pub name: String,
    pub value: String,
}

impl RoleSetting {
    /// Whether one takes the other's place.
    pub fn is_same(&self, other: &RoleSetting) -> bool {
        (self.database, self.role, &self.name) == (other.database, other.role, &other.name)
    }
}
