use super::*;

fn fed(work: impl Future<Output = Result<()>> + Send + 'static) -> BatchStream {
    let (sender, receiver) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        let _sender = sender;
        work.await
    });
    BatchStream { receiver, feeder: Some(Running { task, stop: Stop::default() }) }
}

#[tokio::test]
async fn rows_end_when_their_feeder_ends() {
    let mut rows = fed(async { Ok(()) });
    assert!(rows.next().await.expect("no error").is_none());
    assert!(rows.next().await.expect("no error").is_none());
}

#[tokio::test]
async fn a_feeder_that_breaks_down_is_no_end_of_the_rows() {
    let mut rows = fed(async { panic!("as a kernel may") });
    let error = rows.next().await.expect_err("what was given is not all");
    assert_eq!(error.sqlstate, "XX000");
}
