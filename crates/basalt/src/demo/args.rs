//! The options of `basalt demo`.

use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub struct DemoArgs {
    /// Git repository whose history is streamed in [default: the one around the current directory]
    #[arg(long, value_name = "PATH", conflicts_with = "tpch")]
    pub repo: Option<PathBuf>,
    /// Load TPC-H of this scale factor instead (1 is 8.7 million rows), then keep inserting orders
    #[arg(long, value_name = "SF", value_parser = scale_factor)]
    pub tpch: Option<f64>,
    /// Rows per second to stream in; 0 for as many as go
    #[arg(long, value_name = "ROWS_PER_S", default_value_t = 20_000)]
    pub rate: u64,
    /// Where the data is kept; it is used again if it exists [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where the demo's server listens; port 0 is any free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub listen: String,
    /// Where it listens for HTTP; port 0 is any free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub http: String,
    /// One status line per second instead of the live view (as without a terminal)
    #[arg(long)]
    pub plain: bool,
    /// Stop after this time [default: live view: until q; status lines: 30]
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
}

fn scale_factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.001..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("a scale factor is a number from 0.001 to 1000".to_string()),
    }
}
