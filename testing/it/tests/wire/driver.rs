//! What a driver does: typed parameters, binary results, statements in flight behind each other.

use anyhow::{Context, Result};
use basalt_it::servers::Basalt;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, private::BytesMut};
use tokio_postgres::{Client, NoTls};

/// A value of any type as the bytes that travel.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

async fn connect(server: &Basalt) -> Result<Client> {
    let config = format!("host=127.0.0.1 port={} user=basalt dbname=basalt", server.addr.port());
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_every_type_come_back_as_they_went() -> Result<()> {
    let server = Basalt::start()?;
    let client = connect(&server).await?;
    client
        .batch_execute(
            "CREATE TABLE v (id int PRIMARY KEY, b bool, s smallint, i int, l bigint, f real, d double precision,
             t text, y bytea, ts timestamptz, a int[], ta text[])",
        )
        .await?;
    let insert = "INSERT INTO v VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let insert = client.prepare(insert).await?;
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_micros(1_700_000_000_123_456);
    let (bytes, texts) = (vec![0_u8, 255, 7], vec![Some("x".to_string()), None, Some("y,\"z".to_string())]);
    let values: [&(dyn ToSql + Sync); 12] = [
        &1_i32,
        &true,
        &-5_i16,
        &i32::MAX,
        &i64::MIN,
        &1.5_f32,
        &-0.1_f64,
        &"text ä",
        &bytes,
        &time,
        &vec![1, 2, 3],
        &texts,
    ];
    assert_eq!(client.execute(&insert, &values).await?, 1);
    let none: Option<i32> = None;
    let nulls: [&(dyn ToSql + Sync); 12] = [
        &2_i32,
        &None::<bool>,
        &None::<i16>,
        &none,
        &None::<i64>,
        &None::<f32>,
        &None::<f64>,
        &None::<String>,
        &None::<Vec<u8>>,
        &None::<std::time::SystemTime>,
        &None::<Vec<i32>>,
        &None::<Vec<String>>,
    ];
    assert_eq!(client.execute(&insert, &nulls).await?, 1);
    let row = client.query_one("SELECT * FROM v WHERE id = $1", &[&1_i32]).await?;
    assert!(row.get::<_, bool>("b"));
    assert_eq!(row.get::<_, i16>("s"), -5);
    assert_eq!(row.get::<_, i32>("i"), i32::MAX);
    assert_eq!(row.get::<_, i64>("l"), i64::MIN);
    assert_eq!(row.get::<_, f32>("f"), 1.5);
    assert_eq!(row.get::<_, f64>("d"), -0.1);
    assert_eq!(row.get::<_, String>("t"), "text ä");
    assert_eq!(row.get::<_, Vec<u8>>("y"), bytes);
    assert_eq!(row.get::<_, std::time::SystemTime>("ts"), time);
    assert_eq!(row.get::<_, Vec<i32>>("a"), [1, 2, 3]);
    assert_eq!(row.get::<_, Vec<Option<String>>>("ta"), texts);
    let row = client.query_one("SELECT * FROM v WHERE id = $1", &[&2_i32]).await?;
    for column in 1..12 {
        assert_eq!(row.get::<_, Option<Raw>>(column), None, "column {column}");
    }
    Ok(())
}

/// Types that this driver has no Rust type for: binary out, the same binary in again, compared as text.
#[tokio::test(flavor = "multi_thread")]
async fn binary_forms_are_read_as_they_are_written() -> Result<()> {
    let server = Basalt::start()?;
    let client = connect(&server).await?;
    let literals = [
        ("numeric", "-12345.678900"),
        ("numeric", "NaN"),
        ("numeric", "0.00"),
        ("numeric(10,3)", "1.5"),
        ("date", "2024-02-29"),
        ("date", "infinity"),
        ("time", "12:34:56.789"),
        ("timestamp", "1999-12-31 23:59:59.999999"),
        ("interval", "1 year 2 months -3 days 04:05:06.7"),
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("json", "{\"a\": 1}"),
        ("jsonb", "{\"a\": [1, null]}"),
        ("varchar(5)", "abc"),
        ("char(5)", "abc"),
        ("numeric[]", "{1.50,NULL}"),
        ("date[]", "{2024-01-01}"),
        ("oid", "4294967295"),
    ];
    for (ty, literal) in literals {
        let context = || format!("{literal}::{ty}");
        let out = client.query_one(&format!("SELECT '{literal}'::{ty}, '{literal}'::{ty}::text"), &[]).await;
        let out = out.with_context(context)?;
        let (binary, text): (Raw, String) = (out.get(0), out.get(1));
        let back = client.query_one(&format!("SELECT $1::{ty}::text"), &[&binary]).await.with_context(context)?;
        assert_eq!(back.get::<_, String>(0), text, "{literal}::{ty}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_statements_answer_in_order() -> Result<()> {
    let server = Basalt::start()?;
    let client = connect(&server).await?;
    client.batch_execute("CREATE TABLE p (id int PRIMARY KEY, x int)").await?;
    let insert = client.prepare("INSERT INTO p VALUES ($1, $2)").await?;
    let inserts = (0..500).map(|i| {
        let (client, insert) = (&client, &insert);
        async move { client.execute(insert, &[&i, &(i * 2)]).await }
    });
    for done in futures::future::join_all(inserts).await {
        assert_eq!(done?, 1);
    }
    let read = client.prepare("SELECT x FROM p WHERE id = $1").await?;
    let reads = (0..500).map(|i| {
        let (client, read) = (&client, &read);
        async move { client.query_one(read, &[&i]).await }
    });
    for (i, row) in futures::future::join_all(reads).await.into_iter().enumerate() {
        assert_eq!(row?.get::<_, i32>(0), i as i32 * 2);
    }
    // An error in the middle spoils nothing behind it.
    let (bad, good) = futures::join!(client.execute(&insert, &[&1, &1]), client.query_one(&read, &[&1]));
    assert_eq!(bad.unwrap_err().code().map(|code| code.code()), Some("23505"));
    assert_eq!(good?.get::<_, i32>(0), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_deliver_rows_in_pieces() -> Result<()> {
    let server = Basalt::start()?;
    let mut client = connect(&server).await?;
    let transaction = client.transaction().await?;
    let portal = transaction.bind("SELECT g FROM generate_series(1, 1000) g", &[]).await?;
    let (mut seen, mut pieces) = (0, 0);
    loop {
        let rows = transaction.query_portal(&portal, 300).await?;
        if rows.is_empty() {
            break;
        }
        pieces += 1;
        for row in rows {
            seen += 1;
            assert_eq!(row.get::<_, i32>(0), seen);
        }
    }
    assert_eq!((seen, pieces), (1000, 4));
    Ok(())
}

/// Mappers tell from these fields which rule a value broke.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_domain_refuses_is_told_with_its_constraint() -> Result<()> {
    let server = Basalt::start()?;
    let client = connect(&server).await?;
    client
        .batch_execute(
            "CREATE SCHEMA shop;
             CREATE DOMAIN shop.price AS int CONSTRAINT positive CHECK (VALUE > 0);
             CREATE DOMAIN shop.name AS text NOT NULL;
             CREATE DOMAIN small AS shop.price CHECK (VALUE < 100);
             CREATE DOMAIN named AS shop.name CHECK (VALUE <> '');
             CREATE TYPE pair AS (cheap small, dear shop.price);
             CREATE TABLE article (id int PRIMARY KEY, price shop.price, name shop.name, debt int)",
        )
        .await?;
    let by_price = ("23514", "shop", "price", Some("positive"));
    let by_small = ("23514", "public", "small", Some("positive"));
    let expected = [
        ("INSERT INTO article VALUES (1, -1, 'a')", by_price),
        ("SELECT (-1)::shop.price", by_price),
        ("SELECT count(x::shop.price) FROM generate_series(-5, 5) x", by_price),
        ("INSERT INTO article VALUES (1, 1, NULL)", ("23502", "shop", "name", None)),
        ("ALTER TABLE article ADD COLUMN old shop.price DEFAULT 0", by_price),
        ("ALTER TABLE article ALTER COLUMN debt TYPE shop.price", by_price),
        // The outermost one is told, whichever has the constraint.
        ("SELECT (-1)::small", by_small),
        ("SELECT '-1'::small", by_small),
        ("SELECT 100::small", ("23514", "public", "small", Some("small_check"))),
        ("SELECT NULL::named", ("23502", "public", "named", None)),
        ("SELECT row(-1, 1)::pair", by_small),
        ("SELECT '(1,-1)'::pair", by_price),
        ("SELECT array[-1]::small[]", by_small),
        ("SELECT cheap FROM json_populate_record(NULL::pair, '{\"cheap\": -1}')", by_small),
    ];
    client.batch_execute("INSERT INTO article VALUES (9, 1, 'there', -1)").await?;
    for (sql, (sqlstate, schema, domain, constraint)) in expected {
        let refused = client.batch_execute(sql).await.err().with_context(|| sql.to_string())?;
        let refused = refused.as_db_error().with_context(|| sql.to_string())?;
        assert_eq!(refused.code().code(), sqlstate, "{sql}");
        assert_eq!((refused.schema(), refused.datatype()), (Some(schema), Some(domain)), "{sql}");
        assert_eq!((refused.constraint(), refused.table()), (constraint, None), "{sql}");
    }
    Ok(())
}
