/**
 * Converts Prometheus' text format to OpenMetrics, which names the family of a counter without `_total`. Adds no end
 * mark.
 */
export const toOpenMetrics = (text: string): string =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replace(/^(# (?:HELP|TYPE) \S+)_total( |$)/u, "$1$2").replace(/^(# TYPE \S+ )untyped$/u, "$1unknown"))
    .join("\n")
    .concat("\n")
