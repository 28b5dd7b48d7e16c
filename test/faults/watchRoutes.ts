import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../e2e/eventually.ts"
import type { Select } from "./select.ts"

const statements = [
  "CREATE TABLE watched_routes (url text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())",
  `CREATE FUNCTION watch_route() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
     AS $$ BEGIN INSERT INTO public.watched_routes (url) VALUES (NEW.url); RETURN NULL; END $$`,
  "CREATE TRIGGER watch_routes AFTER INSERT ON endpoints FOR EACH ROW EXECUTE FUNCTION watch_route()",
  "INSERT INTO watched_routes (url, at) SELECT url, published_at FROM endpoints"
]
const Routed = Schema.Array(Schema.Struct({ url: Schema.String, at: Schema.Finite }))

interface VerifiedEngines {
  readonly select: Select
  /** When each engine was verified, by its address: Unix milliseconds. */
  readonly verified: Effect.Effect<ReadonlyMap<string, number>>
  /** Whether the record of a verification before that time may be lost. Absent: none is. */
  readonly isRecordLost?: (at: number) => boolean
}

/** Postgres records each published engine. The result asserts that each was verified before, and returns how many were. */
export const watchRoutes = Effect.fnUntraced(function* ({ isRecordLost = () => false, select, verified }: VerifiedEngines) {
  for (const statement of statements) yield* select(Schema.Unknown, statement)
  return Effect.gen(function* () {
    const routed = yield* select(Routed, "SELECT url, (extract(epoch FROM at) * 1000)::float8 AS at FROM watched_routes")
    // Operators record their decisions a second later.
    const verifiedAt = yield* eventually("each engine with traffic is in the records", verified, (all) =>
      routed.every(({ at, url }) => all.has(url) || isRecordLost(at))
    )
    const known = routed.filter(({ at, url }) => verifiedAt.has(url) || !isRecordLost(at))
    const early = known.filter(({ at, url }) => at < (verifiedAt.get(url) ?? Number.POSITIVE_INFINITY))
    assert.deepStrictEqual(early, [], "engines had traffic before they were verified")
    return known.length
  })
})
