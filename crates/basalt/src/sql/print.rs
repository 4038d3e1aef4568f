//! Results on standard output: aligned tables, or CSV.

use std::io::{self, BufWriter, Stdout, Write};

/// Rows that are looked at for the widths of the columns; more are printed in tables of this size.
const ROWS_ALIGNED: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Aligned,
    Csv,
}

type Row = Vec<Option<String>>;

pub struct Printer {
    out: BufWriter<Stdout>,
    style: Style,
    columns: Option<Vec<String>>,
    rows: Vec<Row>,
    count: usize,
}

impl Printer {
    pub fn new(style: Style) -> Printer {
        Printer { out: BufWriter::new(io::stdout()), style, columns: None, rows: Vec::new(), count: 0 }
    }

    pub fn begin(&mut self, columns: Vec<String>) {
        if self.style == Style::Csv {
            self.rows.push(columns.iter().cloned().map(Some).collect());
        }
        self.columns = Some(columns);
        self.count = 0;
    }

    pub fn row(&mut self, row: Row) -> io::Result<()> {
        self.rows.push(row);
        self.count += 1;
        if self.rows.len() >= ROWS_ALIGNED { self.print_rows() } else { Ok(()) }
    }

    /// A statement has ended with this command tag.
    pub fn complete(&mut self, tag: &str) -> io::Result<()> {
        match (self.columns.take(), self.style) {
            (Some(columns), Style::Aligned) => {
                self.columns = Some(columns);
                self.print_rows()?;
                self.columns = None;
                let plural = if self.count == 1 { "" } else { "s" };
                writeln!(self.out, "({} row{plural})\n", self.count)?;
                // Whether rows were only read is clear; how many were changed is not.
                match ["INSERT ", "UPDATE ", "DELETE ", "MERGE "].iter().any(|verb| tag.starts_with(verb)) {
                    true => writeln!(self.out, "{tag}"),
                    false => Ok(()),
                }
            }
            (Some(_), Style::Csv) => self.print_rows(),
            (None, Style::Aligned) => writeln!(self.out, "{tag}"),
            (None, Style::Csv) => Ok(()),
        }
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// What COPY gives, as it is.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// The statement failed: rows that came before are shown.
    pub fn abandon(mut self) -> io::Result<()> {
        if self.count > 0 {
            self.print_rows()?;
        }
        self.out.flush()
    }

    fn print_rows(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        match (self.style, &self.columns) {
            (Style::Csv, _) => rows.iter().try_for_each(|row| write_csv(row, &mut self.out)),
            (Style::Aligned, Some(columns)) => write_table(columns, &rows, &mut self.out),
            (Style::Aligned, None) => Ok(()),
        }
    }
}

fn write_csv(row: &Row, out: &mut impl Write) -> io::Result<()> {
    for (i, cell) in row.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        match cell {
            None => write!(out, "{comma}")?,
            Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                write!(out, "{comma}\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => write!(out, "{comma}{text}")?,
        }
    }
    writeln!(out)
}

/// As psql prints: a header, a rule, numbers to the right.
fn write_table(columns: &[String], rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let cell = |row: &Row, i: usize| row[i].clone().unwrap_or_default().replace('\n', "↵");
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..columns.len())
        .map(|i| rows.iter().map(|row| width(&cell(row, i))).chain([width(&columns[i])]).max().unwrap_or(0))
        .collect();
    let numbers: Vec<bool> = (0..columns.len()).map(|i| is_numeric(rows, i)).collect();
    let header: Vec<String> = columns.iter().zip(&widths).map(|(name, width)| format!(" {name:^width$} ")).collect();
    writeln!(out, "{}", header.join("|").trim_end())?;
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    writeln!(out, "{}", rule.join("+"))?;
    for row in rows {
        let cells: Vec<String> = (0..columns.len())
            .map(|i| match numbers[i] {
                true => format!(" {:>width$} ", cell(row, i), width = widths[i]),
                false => format!(" {:<width$} ", cell(row, i), width = widths[i]),
            })
            .collect();
        writeln!(out, "{}", cells.join("|").trim_end())?;
    }
    Ok(())
}

fn is_numeric(rows: &[Row], column: usize) -> bool {
    let mut values = rows.iter().filter_map(|row| row[column].as_deref()).peekable();
    values.peek().is_some() && values.all(|value| value.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[Option<&str>]]) -> Vec<Row> {
        rows.iter().map(|row| row.iter().map(|cell| cell.map(str::to_string)).collect()).collect()
    }

    #[test]
    fn tables_align_numbers_to_the_right() {
        let mut out = Vec::new();
        let rows = rows(&[&[Some("1"), Some("bö")], &[Some("-20"), None]]);
        write_table(&["id".into(), "name".into()], &rows, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            [" id  | name", "-----+------", "   1 | bö", " -20 |", ""].join("\n")
        );
    }

    #[test]
    fn csv_tells_nulls_from_empty_text() {
        let mut out = Vec::new();
        for row in rows(&[&[None, Some("")], &[Some("a\"b"), Some("c,d")]]) {
            write_csv(&row, &mut out).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), ",\"\"\n\"a\"\"b\",\"c,d\"\n");
    }
}
