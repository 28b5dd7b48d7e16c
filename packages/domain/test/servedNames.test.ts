import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { adapterName, baseInEngine, nameInEngine, servedNames } from "../src/index.ts"

/** Names that are, or nearly are, ones that engines are given by us. */
const Slug = Schema.Union([
  Schema.Literals(["adapter", "base", "model", "-adapter", "Adapter", "-"]),
  Schema.String.check(Schema.isPattern(/^[A-Za-z0-9._-]{3,12}$/))
])

const Wire = Schema.Struct({ acceptsLeadingHyphen: Schema.Boolean })

describe("the names that an engine serves", () => {
  it.prop(
    "are unique for every model, and none is that of the adapter",
    [Wire, Slug, Slug, Schema.Boolean, Schema.Boolean],
    ([wire, org, slug, isAdapted, isPublic]) => {
      const callable = isPublic ? [slug, `${org}/${slug}`] : [`${org}/${slug}`, slug]
      const names = servedNames(wire, callable, isAdapted)
      const all = isAdapted ? [...names, adapterName] : names
      assert.strictEqual(new Set(all).size, all.length)
      // What a trial asks the base by, before and after the model is published.
      for (const name of callable) assert.include(names, isAdapted ? baseInEngine(wire, name) : nameInEngine(wire, name))
    },
    { arbitrary: { runs: 2_000 } }
  )

  it("do not change for models whose name is another than the adapter's, so that engines that already run keep theirs", () => {
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["acme/tuned", "tuned"], true), ["acme/tuned", "tuned"])
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["adapter", "acme/adapter"], false), ["adapter", "acme/adapter"])
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["adapter", "acme/adapter"], true), ["base", "acme/adapter"])
    assert.deepStrictEqual(servedNames({ acceptsLeadingHyphen: false }, ["-tuned", "acme/-tuned"], true), ["model", "acme/-tuned"])
  })
})
