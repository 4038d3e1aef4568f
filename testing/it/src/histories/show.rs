//! Histories and transactions as text, one transaction per line.

use super::{Fate, History, Reading, Step, Transaction, Value};

pub(super) fn name(at: usize) -> String {
    format!("T{at}")
}

pub(super) fn list_text(list: &[Value]) -> String {
    let values: Vec<String> = list.iter().map(|value| value.0.to_string()).collect();
    format!("[{}]", values.join(" "))
}

pub(super) fn transaction_text(at: usize, transaction: &Transaction) -> String {
    let fate = match transaction.fate {
        Fate::Committed => "committed",
        Fate::Aborted => "rolled back",
        Fate::Unknown => "unknown",
    };
    let ms = |ns: u64| format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    let mut text = format!(
        "{} of client {}, {} to {} ms, {fate}: ",
        name(at),
        transaction.client,
        ms(transaction.began_ns),
        ms(transaction.ended_ns)
    );
    let mut statement = None;
    for operation in &transaction.operations {
        text.push_str(match statement.replace(operation.statement) {
            None => "",
            Some(last) if last == operation.statement => ", ",
            Some(_) => "; ",
        });
        let how = if operation.reading == Reading::Locked { " locked" } else { "" };
        match &operation.step {
            Step::Append { key, value } => text.push_str(&format!("append {} to {}", value.0, key.0)),
            Step::Read { key, list } => text.push_str(&format!("read{how} {} {}", key.0, list_text(list))),
            Step::Range { first, last, lists } => {
                let lists: Vec<String> =
                    lists.iter().map(|(key, list)| format!("{} {}", key.0, list_text(list))).collect();
                text.push_str(&format!("read{how} {}..={} {{{}}}", first.0, last.0, lists.join(", ")));
            }
        }
    }
    text
}

pub fn render(history: &History) -> String {
    let lines = history.transactions.iter().enumerate().map(|(at, one)| transaction_text(at, one) + "\n");
    lines.collect()
}
