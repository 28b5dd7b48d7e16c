import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, each, eventually } from "./KubeServer.ts"
import { type Behaviours, configMap, openStage, pod } from "./Stage.ts"

const names = (value: Parameters<typeof at>[0]) => each(at(value, "items"), "metadata.name")

/** Lists: pages, selectors, versions. */
export const lists: Behaviours = {
  "the pages together are the list, and each reports the remaining number": Effect.gen(function* () {
    const { configMaps, get, post } = yield* openStage
    for (const name of ["a", "b", "c", "d", "e"]) yield* post(configMaps, configMap(name, {}, { labels: { page: "yes" } }))
    const pageNames: Array<unknown> = []
    let token = ""
    do {
      const { body } = yield* get(`${configMaps}?limit=2${token === "" ? "" : `&continue=${encodeURIComponent(token)}`}`)
      pageNames.push([names(body).filter((name) => name !== "kube-root-ca.crt")])
      token = String(at(body, "metadata.continue") ?? "")
    } while (token !== "")
    assert.deepStrictEqual(pageNames.flat(2), ["a", "b", "c", "d", "e"])
    const first = yield* get(`${configMaps}?limit=2`)
    assert.isNumber(at(first.body, "metadata.remainingItemCount"))
    const labelled = yield* get(`${configMaps}?limit=2&labelSelector=page%3Dyes`)
    // How many match is not known before they are looked at.
    assert.deepStrictEqual([names(labelled.body), at(labelled.body, "metadata.remainingItemCount")], [["a", "b"], undefined])
    assert.strictEqual(at(first.body, "kind"), "ConfigMapList")
    assert.match(String(at(first.body, "metadata.resourceVersion")), /^\d+$/)
  }),

  "later pages show the state of the first page's version": Effect.gen(function* () {
    const { configMaps, get, post, remove } = yield* openStage
    for (const name of ["a", "b", "c", "d"]) yield* post(configMaps, configMap(name, {}, { labels: { page: "yes" } }))
    const query = `${configMaps}?limit=2&labelSelector=page%3Dyes`
    const first = yield* get(query)
    yield* post(configMaps, configMap("bb", {}, { labels: { page: "yes" } }))
    yield* post(configMaps, configMap("e", {}, { labels: { page: "yes" } }))
    yield* remove(`${configMaps}/c`)
    const second = yield* get(`${query}&continue=${encodeURIComponent(String(at(first.body, "metadata.continue")))}`)
    assert.deepStrictEqual(
      [names(first.body), names(second.body)],
      [
        ["a", "b"],
        ["c", "d"]
      ]
    )
    assert.strictEqual(at(second.body, "metadata.resourceVersion"), at(first.body, "metadata.resourceVersion"))
  }),

  "an expired page token is answered with 410, an invalid one with 400": Effect.gen(function* () {
    const { configMaps, get, post } = yield* openStage
    for (const name of ["a", "b", "c"]) yield* post(configMaps, configMap(name))
    const { body } = yield* get(`${configMaps}?limit=1`)
    const token = JSON.parse(Buffer.from(String(at(body, "metadata.continue")), "base64url").toString())
    const old = Buffer.from(JSON.stringify({ ...token, rv: 1 })).toString("base64url")
    const gone = yield* eventually(get(`${configMaps}?limit=1&continue=${old}`), ({ status }) => status !== 200)
    assert.deepStrictEqual([gone.status, at(gone.body, "reason"), at(gone.body, "code")], [410, "Expired", 410])
    const garbage = yield* get(`${configMaps}?limit=1&continue=garbage`)
    assert.deepStrictEqual([garbage.status, at(garbage.body, "reason")], [400, "BadRequest"])
  }),

  "labels select by equality, sets and presence": Effect.gen(function* () {
    const { get, pods, post } = yield* openStage
    yield* post(pods, pod("a", { labels: { app: "x", tier: "1" } }))
    yield* post(pods, pod("b", { labels: { app: "y" } }))
    yield* post(pods, pod("c", { labels: { app: "z", tier: "2" } }))
    const select = (selector: string) => Effect.map(get(`${pods}?labelSelector=${encodeURIComponent(selector)}`), ({ body }) => names(body))
    assert.deepStrictEqual(yield* select("app=x"), ["a"])
    assert.deepStrictEqual(yield* select("app==x"), ["a"])
    assert.deepStrictEqual(yield* select("app!=x"), ["b", "c"])
    assert.deepStrictEqual(yield* select("app in (x, z),tier"), ["a", "c"])
    assert.deepStrictEqual(yield* select("tier notin (1)"), ["b", "c"])
    assert.deepStrictEqual(yield* select("!tier"), ["b"])
    const wrong = yield* get(`${pods}?labelSelector=${encodeURIComponent("a in (")}`)
    assert.deepStrictEqual([wrong.status, at(wrong.body, "reason")], [400, "BadRequest"])
  }),

  "fields select by name, node and phase, and no others": Effect.gen(function* () {
    const { get, pods, post } = yield* openStage
    yield* post(pods, pod("a", {}, { nodeName: "contract-0" }))
    yield* post(pods, pod("b", {}, { schedulerName: "nobody" }))
    const select = (selector: string) => Effect.map(get(`${pods}?fieldSelector=${encodeURIComponent(selector)}`), ({ body }) => names(body))
    assert.deepStrictEqual(yield* select("spec.nodeName=contract-0"), ["a"])
    assert.deepStrictEqual(yield* select("metadata.name=b,status.phase=Pending"), ["b"])
    assert.deepStrictEqual(yield* select("spec.nodeName!=contract-0"), ["b"])
    assert.strictEqual((yield* get(`${pods}?fieldSelector=spec.volumes%3Dx`)).status, 400)
  }),

  "a list of a future version times out": Effect.gen(function* () {
    const { configMaps, get } = yield* openStage
    const ahead = yield* get(`${configMaps}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan&timeoutSeconds=1`)
    assert.deepStrictEqual([ahead.status, at(ahead.body, "reason")], [504, "Timeout"])
    assert.include(String(at(ahead.body, "message")), "Too large resource version")
    assert.strictEqual(at(ahead.body, "details.causes.0.reason"), "ResourceVersionTooLarge")
  }),

  "a collection is deleted by a selector": Effect.gen(function* () {
    const { configMaps, get, post, remove } = yield* openStage
    yield* post(configMaps, configMap("a", {}, { labels: { go: "yes" } }))
    yield* post(configMaps, configMap("b", {}, { labels: { go: "no" } }))
    yield* remove(`${configMaps}?labelSelector=go%3Dyes`)
    assert.deepStrictEqual([(yield* get(`${configMaps}/a`)).status, (yield* get(`${configMaps}/b`)).status], [404, 200])
  })
}
