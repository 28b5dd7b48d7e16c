import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { adapterName, baseInEngine, nameInEngine, servedNames } from "../src/index.ts"

/** Names that equal or resemble the names that Seatrial gives to engines. */
const Slug = Schema.Union([
  Schema.Literals(["adapter", "base", "model", "-adapter", "Adapter", "-"]),
  Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._-]{3,12}$/))
])

const Wire = Schema.Struct({ acceptsLeadingHyphen: Schema.Boolean })

describe("the names that an engine serves", () => {
  it.prop(
    "are unique for every model, and none equals the adapter's",
    [Wire, Slug, Slug, Schema.Boolean, Schema.Boolean],
    ([wire, org, slug, isAdapted, isPublic]) => {
      const callable = isPublic ? [slug, `${org}/${slug}`] : [`${org}/${slug}`, slug]
      const names = servedNames(wire, callable, isAdapted)
      const all = isAdapted ? [...names, adapterName] : names
      assert.strictEqual(new Set(all).size, all.length)
      // The names by which a trial addresses the base, before and after the model is published.
      for (const name of callable) assert.include(names, isAdapted ? baseInEngine(wire, name) : nameInEngine(wire, name))
    },
    { arbitrary: { runs: 2_000 } }
  )

  it("do not change if no name equals the adapter's, so that running engines keep theirs", () => {
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["acme/tuned", "tuned"], true), ["acme/tuned", "tuned"])
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["adapter", "acme/adapter"], false), ["adapter", "acme/adapter"])
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["adapter", "acme/adapter"], true), ["base", "acme/adapter"])
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["-tuned", "acme/-tuned"], true), ["model", "acme/-tuned"])
  })
})
