//! A certificate and its key from PEM files, as rustls wants them.

use crate::{Error, TlsFiles};
use basalt_sched::FileSystem;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

pub fn acceptor(fs: &dyn FileSystem, files: &TlsFiles) -> Result<TlsAcceptor, Error> {
    let pem = read(fs, &files.certificate)?;
    let bad = |path: &Path, what, reason: String| Error::TlsContent { path: path.to_path_buf(), what, reason };
    let chain: Vec<_> = rustls_pemfile::certs(&mut pem.as_slice())
        .collect::<Result<_, _>>()
        .map_err(|error| bad(&files.certificate, "certificate", error.to_string()))?;
    if chain.is_empty() {
        return Err(bad(&files.certificate, "certificate", "no CERTIFICATE block".into()));
    }
    let pem = read(fs, &files.key)?;
    let key = rustls_pemfile::private_key(&mut pem.as_slice())
        .map_err(|error| bad(&files.key, "private key", error.to_string()))?
        .ok_or_else(|| bad(&files.key, "private key", "no PRIVATE KEY block".into()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(&files.certificate, "certificate", error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| bad(&files.certificate, "certificate", error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>, Error> {
    fs.read(path).map_err(|source| Error::TlsFile { path: path.to_path_buf(), source })
}
