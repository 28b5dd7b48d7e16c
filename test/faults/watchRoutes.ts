import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { Lane } from "./Lane.ts"

const statements = [
  "CREATE TABLE watched_routes (url text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())",
  `CREATE FUNCTION watch_route() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
     AS $$ BEGIN INSERT INTO public.watched_routes (url) VALUES (NEW.url); RETURN NULL; END $$`,
  "CREATE TRIGGER watch_routes AFTER INSERT ON endpoints FOR EACH ROW EXECUTE FUNCTION watch_route()",
  "INSERT INTO watched_routes (url, at) SELECT url, published_at FROM endpoints"
]
const Routed = Schema.Array(Schema.Struct({ url: Schema.String, at: Schema.Finite }))

/** Postgres records each published engine. The result asserts that each was verified before. */
export const watchRoutes = Effect.fnUntraced(function* ({ select, verified }: Lane) {
  for (const statement of statements) yield* select(Schema.Unknown, statement)
  return Effect.gen(function* () {
    const routed = yield* select(Routed, "SELECT url, (extract(epoch FROM at) * 1000)::float8 AS at FROM watched_routes")
    const early = routed.filter(({ at, url }) => at < (verified.get(url) ?? Number.POSITIVE_INFINITY))
    assert.deepStrictEqual(early, [], "engines had traffic before they were verified")
    return routed.length
  })
})
