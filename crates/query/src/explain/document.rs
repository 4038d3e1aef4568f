//! What EXPLAIN tells in structured formats: values, and the three ways to write them, laid out as PostgreSQL lays them
//! out.

/// Fields in order.
pub type Object = Vec<(String, Value)>;

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Text(String),
    /// As it is written.
    Number(String),
    Texts(Vec<String>),
    /// XML calls each by a name.
    Objects(&'static str, Vec<Object>),
    Object(Object),
}

impl Value {
    pub fn count(count: u64) -> Value {
        Value::Number(count.to_string())
    }

    pub fn millis(millis: f64) -> Value {
        Value::Number(format!("{millis:.3}"))
    }
}

/// One query.
pub fn json(query: &Object) -> String {
    format!("[\n  {}\n]", json_object(query, 2))
}

fn json_object(object: &Object, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let field = |(key, value): &(String, Value)| format!("{pad}  {}: {}", quoted(key), json_value(value, indent + 2));
    format!("{{\n{}\n{pad}}}", object.iter().map(field).collect::<Vec<_>>().join(",\n"))
}

fn json_value(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Text(text) => quoted(text),
        Value::Number(number) => number.clone(),
        Value::Texts(texts) => {
            format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
        }
        Value::Objects(_, objects) => {
            let each = |object: &Object| format!("{pad}  {}", json_object(object, indent + 2));
            format!("[\n{}\n{pad}]", objects.iter().map(each).collect::<Vec<_>>().join(",\n"))
        }
        Value::Object(object) => json_object(object, indent),
    }
}

pub fn xml(query: &Object) -> String {
    let mut out = String::from("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
    xml_object(query, 4, &mut out);
    out.push_str("  </Query>\n</explain>");
    out
}

fn xml_object(object: &Object, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for (key, value) in object {
        let tag = key.replace(' ', "-");
        match value {
            Value::Text(text) => out.push_str(&format!("{pad}<{tag}>{}</{tag}>\n", escaped(text))),
            Value::Number(number) => out.push_str(&format!("{pad}<{tag}>{number}</{tag}>\n")),
            Value::Texts(texts) => {
                let items = texts.iter().map(|text| format!("{pad}  <Item>{}</Item>\n", escaped(text)));
                out.push_str(&format!("{pad}<{tag}>\n{}{pad}</{tag}>\n", items.collect::<String>()));
            }
            Value::Objects(name, objects) => {
                out.push_str(&format!("{pad}<{tag}>\n"));
                for object in objects {
                    out.push_str(&format!("{pad}  <{name}>\n"));
                    xml_object(object, indent + 4, out);
                    out.push_str(&format!("{pad}  </{name}>\n"));
                }
                out.push_str(&format!("{pad}</{tag}>\n"));
            }
            Value::Object(object) => {
                out.push_str(&format!("{pad}<{tag}>\n"));
                xml_object(object, indent + 2, out);
                out.push_str(&format!("{pad}</{tag}>\n"));
            }
        }
    }
}

pub fn yaml(query: &Object) -> String {
    let mut out = String::new();
    yaml_items(std::slice::from_ref(query), 0, &mut out);
    out.trim_end_matches('\n').to_string()
}

/// Objects behind dashes, so many spaces in.
fn yaml_items(objects: &[Object], indent: usize, out: &mut String) {
    for object in objects {
        let mut fields = String::new();
        yaml_object(object, indent + 2, &mut fields);
        // The first field stands behind the dash.
        out.push_str(&format!("{}- {}", " ".repeat(indent), fields.trim_start_matches(' ')));
    }
}

fn yaml_object(object: &Object, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for (key, value) in object {
        match value {
            Value::Text(text) => out.push_str(&format!("{pad}{key}: {}\n", quoted(text))),
            Value::Number(number) => out.push_str(&format!("{pad}{key}: {number}\n")),
            Value::Texts(texts) => {
                let items = texts.iter().map(|text| format!("{pad}  - {}\n", quoted(text)));
                out.push_str(&format!("{pad}{key}: \n{}", items.collect::<String>()));
            }
            Value::Objects(_, objects) => {
                out.push_str(&format!("{pad}{key}: \n"));
                yaml_items(objects, indent + 2, out);
            }
            Value::Object(object) => {
                out.push_str(&format!("{pad}{key}: \n"));
                yaml_object(object, indent + 2, out);
            }
        }
    }
}

/// Text between tags of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Object {
        let scan = vec![("Node Type".to_string(), Value::Text("Scan on \"a<b\"".into()))];
        let plan = vec![
            ("Node Type".to_string(), Value::Text("Sort".into())),
            ("Sort Key".to_string(), Value::Texts(vec!["a".into(), "b DESC".into()])),
            ("Plans".to_string(), Value::Objects("Plan", vec![scan.clone(), scan])),
        ];
        vec![("Plan".to_string(), Value::Object(plan)), ("Planning Time".to_string(), Value::millis(0.25))]
    }

    #[test]
    fn json_nests_by_two_spaces() {
        let expected = r#"[
  {
    "Plan": {
      "Node Type": "Sort",
      "Sort Key": ["a", "b DESC"],
      "Plans": [
        {
          "Node Type": "Scan on \"a<b\""
        },
        {
          "Node Type": "Scan on \"a<b\""
        }
      ]
    },
    "Planning Time": 0.250
  }
]"#;
        assert_eq!(json(&sample()), expected);
    }

    #[test]
    fn xml_escapes_and_names_elements_without_spaces() {
        let expected = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">
  <Query>
    <Plan>
      <Node-Type>Sort</Node-Type>
      <Sort-Key>
        <Item>a</Item>
        <Item>b DESC</Item>
      </Sort-Key>
      <Plans>
        <Plan>
          <Node-Type>Scan on \"a&lt;b\"</Node-Type>
        </Plan>
        <Plan>
          <Node-Type>Scan on \"a&lt;b\"</Node-Type>
        </Plan>
      </Plans>
    </Plan>
    <Planning-Time>0.250</Planning-Time>
  </Query>
</explain>";
        assert_eq!(xml(&sample()), expected);
    }

    #[test]
    fn yaml_puts_first_fields_behind_dashes() {
        let expected = "- Plan: \n    Node Type: \"Sort\"\n    Sort Key: \n      - \"a\"\n      - \"b DESC\"\n    Plans: \
                        \n      - Node Type: \"Scan on \\\"a<b\\\"\"\n      - Node Type: \"Scan on \\\"a<b\\\"\"\n  \
                        Planning Time: 0.250";
        assert_eq!(yaml(&sample()), expected);
    }
}
