//! What a model test does, as a list that can be cut anywhere: an operation that does not apply does nothing.

use basalt_sim::Rng;

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Begin {
        txn: usize,
        repeatable_read: bool,
        synchronous: bool,
    },
    /// Operations of a transaction that is not open are transactions of their own.
    Insert {
        txn: usize,
        slot: usize,
        k: i64,
        seed: u64,
    },
    /// With the key of a row that another open transaction has written.
    InsertWritten {
        txn: usize,
        pick: u64,
        seed: u64,
    },
    Update {
        txn: usize,
        slot: usize,
        pick: u64,
        seed: u64,
    },
    UpdateKey {
        txn: usize,
        slot: usize,
        pick: u64,
        k: i64,
        seed: u64,
    },
    Delete {
        txn: usize,
        slot: usize,
        pick: u64,
    },
    /// Rows k, k + step, …
    Bulk {
        txn: usize,
        slot: usize,
        k: i64,
        step: i64,
        rows: i64,
        seed: u64,
    },
    Savepoint {
        txn: usize,
    },
    RollbackTo {
        txn: usize,
        pick: u64,
    },
    Commit {
        txn: usize,
    },
    Abort {
        txn: usize,
    },
    Create {
        txn: usize,
        slot: usize,
    },
    Drop {
        txn: usize,
        slot: usize,
    },
    Truncate {
        txn: usize,
        slot: usize,
    },
    AddColumn {
        txn: usize,
        slot: usize,
        seed: u64,
    },
    DropColumn {
        txn: usize,
        slot: usize,
        pick: u64,
    },
    Orient {
        txn: usize,
        slot: usize,
        pick: u64,
    },
    Pin {
        pin: usize,
    },
    Unpin {
        pin: usize,
    },
    Freeze {
        slot: usize,
    },
    Evict {
        slot: usize,
    },
    Compact {
        slot: usize,
    },
    Checkpoint,
    Reopen,
    /// Power cut (or the death of the process, on a real disk).
    Crash {
        seed: u64,
    },
    /// Compares everything with the model.
    Check {
        seed: u64,
    },
}

pub const TXNS: usize = 3;
pub const PINS: usize = 3;
pub const SLOTS: usize = crate::table::SHAPES.len();

/// Keys come from a small range, so that they meet.
const KEYS: u64 = 120;

pub fn generate(seed: u64, count: usize) -> Vec<Op> {
    let mut rng = Rng::new(seed);
    let mut ops: Vec<Op> = (0..SLOTS).map(|slot| Op::Create { txn: TXNS, slot }).collect();
    ops.extend((0..count).map(|_| one(&mut rng)));
    ops.push(Op::Check { seed: rng.next_u64() });
    ops
}

fn one(rng: &mut Rng) -> Op {
    // `TXNS` is never open: a transaction of its own.
    let txn = rng.below(TXNS as u64 + 2).min(TXNS as u64) as usize;
    let open = rng.below(TXNS as u64) as usize;
    let slot = rng.below(SLOTS as u64) as usize;
    let (pick, seed) = (rng.next_u64(), rng.next_u64());
    let k = rng.below(KEYS) as i64;
    match rng.below(200) {
        0..10 => Op::Begin { txn: open, repeatable_read: rng.one_in(2), synchronous: !rng.one_in(4) },
        10..42 => Op::Insert { txn, slot, k, seed },
        42..45 => Op::InsertWritten { txn, pick, seed },
        45..75 => Op::Update { txn, slot, pick, seed },
        75..83 => Op::UpdateKey { txn, slot, pick, k, seed },
        83..103 => Op::Delete { txn, slot, pick },
        103..113 => {
            let (step, rows) = (*rng.pick(&[1, 1, 1, 3, 0]), *rng.pick(&[3, 20, 60, 130, 260]));
            Op::Bulk { txn, slot, k: k + *rng.pick(&[0, 300, 1000, 5000]), step, rows, seed }
        }
        113..120 => Op::Savepoint { txn: open },
        120..125 => Op::RollbackTo { txn: open, pick },
        125..132 => Op::Commit { txn: open },
        132..134 => Op::Abort { txn: open },
        134..139 => Op::Create { txn, slot },
        139 => Op::Drop { txn, slot },
        140..142 => Op::Truncate { txn, slot },
        142..144 => Op::AddColumn { txn, slot, seed },
        144..146 => Op::DropColumn { txn, slot, pick },
        146 => Op::Orient { txn, slot, pick },
        147..152 => Op::Pin { pin: rng.below(PINS as u64) as usize },
        152..155 => Op::Unpin { pin: rng.below(PINS as u64) as usize },
        155..160 => Op::Freeze { slot },
        160..164 => Op::Evict { slot },
        164..170 => Op::Compact { slot },
        170..173 => Op::Checkpoint,
        173 => Op::Reopen,
        174 => Op::Crash { seed },
        _ => Op::Check { seed },
    }
}
