use super::*;

async fn messages(bytes: &[u8], max: usize) -> (Vec<(u8, Vec<u8>)>, Fault) {
    let mut wire = bytes;
    let mut input = Input::new(max);
    let mut read = Vec::new();
    loop {
        match input.message(&mut wire).await {
            Ok(message) => read.push((message.tag, message.body.to_vec())),
            Err(fault) => return (read, fault),
        }
    }
}

fn sqlstate(fault: &Fault) -> &'static str {
    match fault {
        Fault::Fatal(error) => error.sqlstate,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn messages_come_out_one_by_one_until_the_client_goes() {
    let (read, end) = messages(b"Q\0\0\0\x08abc\0S\0\0\0\x04", 100).await;
    assert_eq!(read, [(b'Q', b"abc\0".to_vec()), (b'S', vec![])]);
    assert!(matches!(end, Fault::Closed));
    let (read, end) = messages(b"Q\0\0\0\x08ab", 100).await;
    assert!(read.is_empty() && matches!(end, Fault::Closed));
}

#[tokio::test]
async fn lengths_and_tags_are_checked_before_a_body_is_awaited() {
    for bad in [&b"Q\0\0\0\x03"[..], b"Q\x7f\xff\xff\xff", b"Q\xff\xff\xff\xff", b"S\0\0\xff\xff", b"\0\0\0\0\x04"] {
        let (_, end) = messages(bad, 1 << 20).await;
        assert_eq!(sqlstate(&end), "08P01", "{}", bad.escape_ascii());
    }
}

#[tokio::test]
async fn a_large_message_arrives_whole_and_memory_grows_with_it() {
    let body = vec![7; 300_000];
    let mut bytes = b"d".to_vec();
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(&body);
    let (read, _) = messages(&bytes, 1 << 20).await;
    assert_eq!(read[0].1, body);
    // Nothing behind the length: what was claimed is not allocated.
    let mut wire = &b"d\x0f\xff\xff\xff"[..];
    let mut input = Input::new(1 << 30);
    assert!(input.message(&mut wire).await.is_err());
    assert!(input.buf.capacity() <= 4 * READ_BYTES);
}

#[tokio::test]
async fn startup_packets_are_short() {
    let mut input = Input::new(100);
    assert_eq!(&input.startup(&mut &b"\0\0\0\x08\x04\xd2\x16\x2f"[..]).await.unwrap()[..], b"\x04\xd2\x16\x2f");
    for bad in [&b"\0\0\0\x07abc"[..], b"\0\0\xff\xff", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut input = Input::new(100);
        assert_eq!(sqlstate(&input.startup(&mut &bad[..]).await.unwrap_err()), "08P01");
    }
}
