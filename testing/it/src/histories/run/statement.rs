//! The ways to read lists and to append to them.

use crate::histories::{GROUP_KEYS, Key, Reading, Value};
use rand::{Rng, rngs::StdRng};

#[derive(Clone, Debug)]
pub(super) enum Param {
    Int(u32),
    Text(String),
}

impl Param {
    pub fn text(&self) -> String {
        match self {
            Param::Int(number) => number.to_string(),
            Param::Text(text) => text.clone(),
        }
    }

    pub fn literal(&self) -> String {
        match self {
            Param::Int(number) => number.to_string(),
            Param::Text(text) => format!("'{text}'"),
        }
    }
}

/// Of which keys a statement's rows tell the lists.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Nothing,
    Keys(Vec<Key>),
    /// From the first to the last one of each.
    Ranges(Vec<(Key, Key)>),
    /// Those that come back are those that were appended to.
    Returned,
}

#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// For what is counted.
    pub form: &'static str,
    /// With `$1`, `$2`, … for the parameters.
    pub sql: String,
    pub params: Vec<Param>,
    pub appends: Vec<(Key, Value)>,
    pub target: Target,
    pub reading: Reading,
    /// For COPY FROM STDIN.
    pub data: Option<String>,
}

pub(super) fn table_of(group: u32) -> String {
    format!("lists{}", group % 2)
}

fn group_of(key: Key) -> u32 {
    key.0 / GROUP_KEYS
}

fn table(key: Key) -> String {
    table_of(group_of(key))
}

fn code(key: Key) -> Param {
    Param::Text(format!("c{}", key.0))
}

fn note(group: u32) -> Param {
    Param::Text(format!("n{group}"))
}

fn ends(group: u32) -> (Key, Key) {
    (Key(group * GROUP_KEYS), Key((group + 1) * GROUP_KEYS - 1))
}

/// A key of the group, the first ones more often.
pub(super) fn choose_key(group: u32, random: &mut StdRng) -> Key {
    let within = random.random_range(0..GROUP_KEYS).min(random.random_range(0..GROUP_KEYS));
    Key(group * GROUP_KEYS + within)
}

/// Two or three different ones.
fn choose_keys(group: u32, random: &mut StdRng) -> Vec<Key> {
    let mut keys: Vec<Key> = (0..3).map(|_| choose_key(group, random)).collect();
    keys.sort();
    keys.dedup();
    keys
}

fn array(numbers: impl Iterator<Item = u32>) -> Param {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    Param::Text(format!("{{{}}}", numbers.join(",")))
}

fn read(form: &'static str, sql: String, params: Vec<Param>, target: Target) -> Statement {
    Statement { form, sql, params, appends: Vec::new(), target, reading: Reading::Snapshot, data: None }
}

/// Some way to read lists of a group, or of two.
pub(super) fn any_read(group: u32, other: u32, random: &mut StdRng) -> Statement {
    let table = table_of(group);
    let key = choose_key(group, random);
    let all = Target::Ranges(vec![ends(group)]);
    let select = format!("SELECT id, l FROM {table} WHERE");
    match random.random_range(-4..19) {
        -4..4 => read_key(key),
        4 => read("read by unique index", format!("{select} code = $1"), vec![code(key)], Target::Keys(vec![key])),
        5 => {
            let keys = choose_keys(group, random);
            let sql = format!("{select} id = ANY($1::int[])");
            read("read = ANY", sql, vec![array(keys.iter().map(|key| key.0))], Target::Keys(keys))
        }
        6 => {
            let keys = choose_keys(group, random);
            let list: Vec<String> = keys.iter().map(|key| key.0.to_string()).collect();
            read("read IN", format!("{select} id IN ({})", list.join(", ")), Vec::new(), Target::Keys(keys))
        }
        7 | 8 => {
            let (first, last) = ends(group);
            let first = Key(random.random_range(first.0..=last.0));
            let sql = format!("{select} id >= $1 AND id <= $2 ORDER BY id");
            let params = vec![Param::Int(first.0), Param::Int(last.0)];
            read("read range", sql, params, Target::Ranges(vec![(first, last)]))
        }
        9 | 10 => read("read by index", format!("{select} grp = $1"), vec![Param::Int(group)], all),
        11 => read("read by scan", format!("{select} note = $1"), vec![note(group)], all),
        12 => {
            let joined = "string_agg(id || ':' || array_to_string(l, ' '), ';' ORDER BY id)";
            read("aggregate", format!("SELECT {joined} FROM {table} WHERE note = $1"), vec![note(group)], all)
        }
        13 => {
            let from = format!("{table}, unnest(l) WITH ORDINALITY AS u (v, n)");
            let sql = format!("SELECT id, array_agg(v ORDER BY n) FROM {from} WHERE note = $1 GROUP BY id");
            read("aggregate of unnest", sql, vec![note(group)], all)
        }
        14 => {
            let sql = format!("SELECT a.id, b.l FROM {table} a JOIN {table} b ON b.code = a.code WHERE a.grp = $1");
            read("read by join", sql, vec![Param::Int(group)], all)
        }
        15 => {
            let sql = format!("{select} note = $1 AND grp >= 0");
            read("read by partial index", sql, vec![note(group)], all)
        }
        16 => {
            let sql = format!("{select} grp * 2 + 1 = $1");
            read("read by index of an expression", sql, vec![Param::Int(group * 2 + 1)], all)
        }
        _ if other == group => read("read by index", format!("{select} grp = $1"), vec![Param::Int(group)], all),
        _ => {
            let sql = format!("{select} grp = $1 UNION ALL SELECT id, l FROM {} WHERE note = $2", table_of(other));
            let both = Target::Ranges(vec![ends(group), ends(other)]);
            read("read two groups", sql, vec![Param::Int(group), note(other)], both)
        }
    }
}

pub(super) fn read_key(key: Key) -> Statement {
    let sql = format!("SELECT id, l FROM {} WHERE id = $1", table(key));
    read("read by key", sql, vec![Param::Int(key.0)], Target::Keys(vec![key]))
}

/// With a lock that keeps writers away until the transaction ends.
pub(super) fn locked_read(group: u32, random: &mut StdRng) -> Statement {
    const LOCKS: [&str; 7] = [
        "FOR UPDATE",
        "FOR NO KEY UPDATE",
        "FOR SHARE",
        "FOR UPDATE NOWAIT",
        "FOR SHARE NOWAIT",
        "FOR UPDATE SKIP LOCKED",
        "FOR SHARE SKIP LOCKED",
    ];
    let lock = LOCKS[random.random_range(0..LOCKS.len())];
    let select = format!("SELECT id, l FROM {} WHERE", table_of(group));
    let (sql, params, target) = if random.random() {
        let key = choose_key(group, random);
        (format!("{select} id = $1 {lock}"), vec![Param::Int(key.0)], Target::Keys(vec![key]))
    } else {
        (format!("{select} grp = $1 ORDER BY id {lock}"), vec![Param::Int(group)], Target::Ranges(vec![ends(group)]))
    };
    // What is skipped is not told.
    let target = if lock.ends_with("SKIP LOCKED") { Target::Returned } else { target };
    Statement { reading: Reading::Locked, ..read(lock, sql, params, target) }
}

/// A lock that lets others change all but the keys: it reads as if it locked nothing.
pub(super) fn key_shared_read(group: u32, random: &mut StdRng) -> Statement {
    let key = choose_key(group, random);
    let sql = format!("SELECT id, l FROM {} WHERE id = $1 FOR KEY SHARE", table(key));
    read("FOR KEY SHARE", sql, vec![Param::Int(key.0)], Target::Keys(vec![key]))
}

pub(super) fn lock_key(key: Key) -> Statement {
    let sql = format!("SELECT id, l FROM {} WHERE id = $1 FOR UPDATE", table(key));
    let target = Target::Keys(vec![key]);
    Statement { reading: Reading::Locked, ..read("lock", sql, vec![Param::Int(key.0)], target) }
}

fn write(form: &'static str, sql: String, params: Vec<Param>, appends: Vec<(Key, Value)>) -> Statement {
    let target = if sql.contains("RETURNING") { Target::Returned } else { Target::Nothing };
    Statement { form, sql, params, appends, target, reading: Reading::Locked, data: None }
}

/// One row, if it is there.
pub(super) fn update(key: Key, value: Value, random: &mut StdRng) -> Statement {
    let set = format!("UPDATE {} SET l = l || $1::int WHERE", table(key));
    let appends = vec![(key, value)];
    let new = Param::Int(value.0);
    match random.random_range(0..6) {
        0 | 1 => write("update by key", format!("{set} id = $2"), vec![new, Param::Int(key.0)], appends),
        2 => {
            let sql = format!("{set} id = $2 RETURNING id, l");
            write("update by key, returning", sql, vec![new, Param::Int(key.0)], appends)
        }
        3 => write("update by unique index", format!("{set} code = $2"), vec![new, code(key)], appends),
        4 => {
            let sql = format!("{set} grp = $2 AND code = $3");
            write("update by index", sql, vec![new, Param::Int(group_of(key)), code(key)], appends)
        }
        _ => {
            let sql = format!("WITH u AS ({set} id = $2 RETURNING id, l) SELECT id, l FROM u");
            write("update in WITH", sql, vec![new, Param::Int(key.0)], appends)
        }
    }
}

/// Those rows of several keys that are there.
pub(super) fn update_many(group: u32, value: Value, random: &mut StdRng) -> Statement {
    let set = format!("UPDATE {} SET l = l || $1::int WHERE", table_of(group));
    let new = Param::Int(value.0);
    let (form, condition, param, keys) = match random.random_range(0..3) {
        0 => {
            let keys = choose_keys(group, random);
            ("update = ANY", "id = ANY($2::int[])", array(keys.iter().map(|key| key.0)), keys)
        }
        choice => {
            let (first, last) = ends(group);
            let keys = (first.0..=last.0).map(Key).collect();
            match choice {
                1 => ("update a group by index", "grp = $2", Param::Int(group), keys),
                _ => ("update a group by scan", "note = $2", note(group), keys),
            }
        }
    };
    let appends = keys.into_iter().map(|key| (key, value)).collect();
    write(form, format!("{set} {condition} RETURNING id, l"), vec![new, param], appends)
}

fn row(key: Key, value: Value) -> (String, Vec<Param>) {
    let group = group_of(key);
    let params = vec![Param::Int(key.0), code(key), Param::Int(group), note(group), Param::Int(value.0)];
    ("($1, $2, $3, $4, ARRAY[$5::int])".to_string(), params)
}

pub(super) fn insert(key: Key, value: Value) -> Statement {
    let (row, params) = row(key, value);
    let sql = format!("INSERT INTO {} (id, code, grp, note, l) VALUES {row}", table(key));
    write("insert", sql, params, vec![(key, value)])
}

/// One statement, whether there is a row or not.
pub(super) fn upsert(key: Key, value: Value, random: &mut StdRng) -> Statement {
    let table = table(key);
    let (row, params) = row(key, value);
    let into = format!("INSERT INTO {table} AS t (id, code, grp, note, l) VALUES {row}");
    let update = "DO UPDATE SET l = t.l || excluded.l";
    let appends = vec![(key, value)];
    match random.random_range(0..4) {
        0 => write("upsert", format!("{into} ON CONFLICT (id) {update}"), params, appends),
        1 => {
            let sql = format!("{into} ON CONFLICT (id) {update} RETURNING id, l");
            write("upsert, returning", sql, params, appends)
        }
        2 => write("upsert by index", format!("{into} ON CONFLICT (code) {update}"), params, appends),
        _ => {
            let sql = format!(
                "MERGE INTO {table} t USING (VALUES ($1::int)) s (id) ON t.id = s.id
                 WHEN MATCHED THEN UPDATE SET l = t.l || $5::int
                 WHEN NOT MATCHED THEN INSERT (id, code, grp, note, l) VALUES {row}"
            );
            write("merge", sql, params, appends)
        }
    }
}

pub(super) fn read_group(group: u32) -> Statement {
    let sql = format!("SELECT id, l FROM {} WHERE id >= $1 AND id <= $2", table_of(group));
    let (first, last) = ends(group);
    read("read before a batch", sql, vec![Param::Int(first.0), Param::Int(last.0)], Target::Ranges(vec![(first, last)]))
}

/// Rows of several keys, of which none must be there.
pub(super) fn batch(keys: &[Key], value: Value, random: &mut StdRng) -> Statement {
    let group = group_of(keys[0]);
    let appends = keys.iter().map(|key| (*key, value)).collect();
    if random.random() {
        let (sql, params) = insert_select(group, keys, value);
        return write("batch", sql, params, appends);
    }
    let line = |key: &Key| format!("{}\tc{}\t{group}\tn{group}\t{{{}}}\n", key.0, key.0, value.0);
    let sql = format!("COPY {} (id, code, grp, note, l) FROM STDIN", table_of(group));
    Statement { data: Some(keys.iter().map(line).collect()), ..write("batch by COPY", sql, Vec::new(), appends) }
}

/// A batch for all keys of a group, whether they are there or not.
pub(super) fn upsert_many(group: u32, value: Value, random: &mut StdRng) -> Statement {
    let (first, last) = ends(group);
    let keys: Vec<Key> = (first.0..=last.0).map(Key).collect();
    let (sql, params) = insert_select(group, &keys, value);
    let (form, action) = match random.random() {
        true => ("batch, else update", "UPDATE SET l = t.l || excluded.l"),
        false => ("batch, else nothing", "NOTHING"),
    };
    let sql = format!("{sql} ON CONFLICT (id) DO {action} RETURNING id, l");
    write(form, sql, params, keys.into_iter().map(|key| (key, value)).collect())
}

fn insert_select(group: u32, keys: &[Key], value: Value) -> (String, Vec<Param>) {
    let sql = format!(
        "INSERT INTO {} AS t (id, code, grp, note, l)
         SELECT k, 'c' || k, $1::int, $2::text, ARRAY[$3::int] FROM unnest($4::int[]) k",
        table_of(group)
    );
    let keys = array(keys.iter().map(|key| key.0));
    (sql, vec![Param::Int(group), note(group), Param::Int(value.0), keys])
}

/// The list as the client knows it, with the value behind it.
pub(super) fn set(key: Key, known: &[Value], value: Value) -> Statement {
    let list = array(known.iter().chain([&value]).map(|value| value.0));
    let sql = format!("UPDATE {} SET l = $1::int[] WHERE id = $2", table(key));
    write("update to a known list", sql, vec![list, Param::Int(key.0)], vec![(key, value)])
}

pub(super) fn insert_list(key: Key, known: &[Value], value: Value) -> Statement {
    let mut statement = insert(key, value);
    statement.form = "insert after delete";
    statement.sql = statement.sql.replace("ARRAY[$5::int]", "$5::int[]");
    statement.params[4] = array(known.iter().chain([&value]).map(|value| value.0));
    statement
}

/// The row goes, and its list is told.
pub(super) fn delete(key: Key) -> Statement {
    let sql = format!("DELETE FROM {} WHERE id = $1 RETURNING id, l", table(key));
    let target = Target::Keys(vec![key]);
    Statement { reading: Reading::Locked, ..read("delete", sql, vec![Param::Int(key.0)], target) }
}
