//! Comments of a definition as documentation.

/// The lines of a comment, such that rustdoc shows them as they are: brackets are no links, and code is no test.
pub(crate) fn shown(comment: &[String]) -> Vec<String> {
    let mut fence: Option<String> = None;
    let mut lines = Vec::new();
    for line in comment {
        let mark = fence_of(line);
        match (&fence, mark) {
            (None, Some(mark)) => {
                // Code of any language but this would be compiled and run by the tests of documentation.
                lines.push(format!("{mark}text"));
                fence = Some(mark);
            }
            (Some(open), Some(mark)) if mark.starts_with(open.as_str()) && line.trim() == mark => {
                lines.push(mark);
                fence = None;
            }
            (Some(_), _) => lines.push(line.clone()),
            (None, None) => lines.push(escaped(line)),
        }
    }
    lines.extend(fence);
    lines
}

/// The mark at the beginning of a line that begins or ends a block of code.
fn fence_of(line: &str) -> Option<String> {
    let line = line.trim_start();
    let first = line.chars().next().filter(|first| ['`', '~'].contains(first))?;
    let mark: String = line.chars().take_while(|each| *each == first).collect();
    // Behind backquotes there are none in such a line, else they are within the text.
    (mark.len() >= 3 && !(first == '`' && line[mark.len()..].contains('`'))).then_some(mark)
}

fn escaped(line: &str) -> String {
    let mut escaped = line.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<");
    // Within a quotation or a list, a block of code would begin here.
    for mark in ["```", "~~~"] {
        escaped = escaped.replace(mark, &mark.chars().flat_map(|each| ['\\', each]).collect::<String>());
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::shown;

    fn lines(text: &str) -> Vec<String> {
        shown(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn code_is_no_test() {
        assert_eq!(
            lines("Like this:\n```\nx[1] = 2;\n```\nor [that]"),
            ["Like this:", "```text", "x[1] = 2;", "```", "or \\[that\\]"]
        );
        assert_eq!(lines("~~~rust\nlet x = ```;\n~~~"), ["~~~text", "let x = ```;", "~~~"]);
        assert_eq!(lines("````c\n```\n````"), ["````text", "```", "````"]);
        assert_eq!(lines("```\nwithout an end"), ["```text", "without an end", "```"]);
        assert_eq!(lines("> ```\n> f()"), ["> \\`\\`\\`", "> f()"]);
        assert_eq!(lines("``` in a line ```"), ["\\`\\`\\` in a line \\`\\`\\`"]);
    }
}
