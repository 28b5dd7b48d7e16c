import { Effect } from "effect"
import type { Lab } from "../Lab.ts"
import type { startKwokCluster } from "./KwokCluster.ts"

export type KwokCluster = Effect.Success<ReturnType<typeof startKwokCluster>>
type Counts = ReadonlyMap<string, number>

/** Values of a page of Prometheus' text format. */
export const samplesOf = (page: string): ReadonlyArray<{ readonly name: string; readonly labels: string; readonly value: number }> =>
  [...page.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = "", labels = "", value]) => ({ name, labels, value: Number(value) }))

export const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0)

/** What was added since `before`; nothing where nothing was. */
export const since = (now: Counts, before: Counts): Counts =>
  new Map([...now].map(([key, value]) => [key, value - (before.get(key) ?? 0)] as const).filter(([, value]) => value > 0))

/** `3 leases, 1 pods`, or `none`. */
export const words = (counts: Counts): string => (counts.size === 0 ? "none" : [...counts].map(([name, count]) => `${count} ${name}`).join(", "))

const isWrite = /verb="(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)"/
const resourceOf = (labels: string) => `${/resource="([^"]*)"/.exec(labels)?.[1] ?? ""}${labels.includes('subresource="status"') ? "/status" : ""}`

/** Writes that the API server has answered since it began, of whomever, by resource. */
export const apiWrites = (cluster: KwokCluster) =>
  Effect.map(cluster.command("kubectl", ["get", "--raw", "/metrics"]), (page): Counts => {
    const taken = new Map<string, number>()
    for (const { labels, name, value } of samplesOf(page)) {
      if (name !== "apiserver_request_total" || !isWrite.test(labels)) continue
      const resource = resourceOf(labels)
      taken.set(resource, (taken.get(resource) ?? 0) + value)
    }
    return taken
  })

/** Rows of the product's database written so far, by table. Postgres tells of them some seconds late. */
export const rowWrites = ({ sql }: Lab) =>
  Effect.map(
    sql<{ readonly relname: string; readonly written: number }>`SELECT relname, (n_tup_ins + n_tup_upd + n_tup_del)::int AS written FROM pg_stat_user_tables`,
    (rows): Counts => new Map(rows.map(({ relname, written }) => [relname, written]))
  )
