//! `basalt check`: read everything in a data directory that no server has open.

use crate::cli::CheckArgs;
use anyhow::{Context, Result, bail};
use basalt_sched::Os;
use indicatif::ProgressBar;

pub fn run(args: CheckArgs) -> Result<()> {
    let os = Os::real();
    if !os.fs.exists(&args.data_dir).with_context(|| format!("cannot look at {}", args.data_dir.display()))? {
        bail!("the data directory {} does not exist", args.data_dir.display());
    }
    let spinner = ProgressBar::new_spinner();
    let mut progress = |what: &str| {
        spinner.set_message(what.to_string());
        spinner.tick();
    };
    let report = basalt_engine::check(&os, &args.data_dir, &mut progress);
    spinner.finish_and_clear();
    let report = report?;
    println!("version       {}", report.version);
    println!("tables        {}", report.tables);
    println!("files         {} ({} bytes, {} rows)", report.files, report.file_bytes, report.rows);
    println!("log           {} records, {} bytes torn at its end", report.log_records, report.log_torn_bytes);
    for name in &report.unlisted {
        println!("unlisted      {name}");
    }
    if !report.unlisted.is_empty() {
        println!(
            "              (files in no checkpoint do no harm: the log names them, or the next start removes them)"
        );
    }
    for problem in &report.problems {
        println!("PROBLEM       {problem}");
    }
    match report.problems.len() {
        0 => {
            println!("{} is sound", args.data_dir.display());
            Ok(())
        }
        count => bail!("{} has {count} problem{}", args.data_dir.display(), if count == 1 { "" } else { "s" }),
    }
}
