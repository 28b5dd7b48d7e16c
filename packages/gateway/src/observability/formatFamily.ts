import type { MetricFamily } from "@seatrial/domain"

/** Escapes a label value for Prometheus' text format. */
export const quoted = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

/** The lines of a metric family, after its HELP and TYPE lines. */
export const formatFamily = (
  { family: { meaning, name, type } }: { readonly family: MetricFamily },
  openMetrics: boolean,
  of: (name: string) => ReadonlyArray<string>
): ReadonlyArray<string> => {
  const familyName = openMetrics && type === "counter" ? name.replace(/_total$/u, "") : name
  return [`# HELP ${familyName} ${meaning}`, `# TYPE ${familyName} ${type}`, ...of(name)]
}
