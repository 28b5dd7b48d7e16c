import { assert, describe, layer } from "@effect/vitest"
import { DeploymentDetail, DeploymentOperation, makeApiKey, scopes } from "@seatrial/domain"
import { ApiKeys, Organizations } from "@seatrial/store"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { type ServerProcess, startServer } from "./ServerProcess.ts"
import { makeTenant, Stage } from "./Stage.ts"
import { nameOf, type Operation, offered, operations } from "./tenants/operations.ts"
import { makeRecords, type Records } from "./tenants/records.ts"
import { possible, responses, rightCall, without, wrongCall } from "./tenants/wrongness.ts"
import { type Answer, type Ask, bodyOf, failureOf } from "./Wire.ts"

/** Two organizations with records of every kind, and a server with very low rate limits. */
class Neighbours extends Context.Service<Neighbours, { readonly own: Records; readonly foreign: Records; readonly strict: ServerProcess }>()(
  "seatrial/test/contract/Neighbours"
) {
  static readonly layer = Layer.effect(
    Neighbours,
    Effect.gen(function* () {
      const { url } = yield* Stage
      const rates = {
        SERVER_READS_PER_KEY: "0.0001",
        SERVER_READS_PER_KEY_BURST: "1",
        SERVER_READS_PER_ORG: "0.0001",
        SERVER_READS_PER_ORG_BURST: "1",
        SERVER_PREVIEWS_PER_ORG: "1",
        SERVER_WRITES_PER_ORG: "1"
      }
      return Neighbours.of({
        own: yield* makeRecords("homeward"),
        foreign: yield* makeRecords("zzforeignzz"),
        strict: yield* startServer(url, rates)
      })
    })
  )
}

let turn = 0

/** Calls one of the two servers as a caller outside of the foreign organization, and asserts that the response contains none of its data. */
const call = Effect.fnUntraced(function* (ask: Ask, server?: ServerProcess) {
  const { servers } = yield* Stage
  const { foreign } = yield* Neighbours
  const answer = yield* (server ?? servers[turn++ % 2 === 0 ? 0 : 1]).answer(ask)
  const fullText = `${answer.text} ${JSON.stringify(answer.headers)}`.toLowerCase()
  for (const mark of foreign.marks) assert.notInclude(fullText, mark, `${ask.method} ${ask.path}`)
  return answer
})

const codeOf = (answer: Answer): string => Option.match(failureOf(answer), { onNone: () => "", onSome: ({ code }) => code })

/** The response without its request ID and date. */
const essence = ({ headers, status, text }: Answer) => {
  const { date: _, "x-request-id": id, ...rest } = headers
  return { status, headers: rest, text: text.replaceAll(String(id), "req") }
}

const bearer = (authorization: string) => ({ headers: { authorization } })

/** A valid call with the given key or header. */
const callWith = (operation: Operation, own: Records, credential: { readonly key?: string; readonly headers?: Readonly<Record<string, string>> }) => {
  const right = rightCall(operation, operation.id === undefined ? "" : own.records[operation.id])
  return call({ ...right, ...credential, headers: { ...right.headers, ...credential.headers } })
}

const guarded = operations.filter((operation) => operation.scopes.length > 0)

layer(Neighbours.layer.pipe(Layer.provideMerge(Stage.layer())), { excludeTestServices: true, timeout: 300_000 })("organizations on one installation", (it) => {
  it.effect("the table of operations is complete", () => Effect.sync(() => assert.deepStrictEqual(operations.map(nameOf).sort(), [...offered].sort())))

  describe("a credential", () => {
    for (const operation of guarded) {
      it.effect(`of a wrong kind is refused, and the right scope is sufficient: ${nameOf(operation)}`, () =>
        Effect.gen(function* () {
          const { own } = yield* Neighbours
          const revoked = yield* own.withKey()
          yield* (yield* ApiKeys).revoke(own.orgId, revoked.id)
          const expired = yield* own.withKey(scopes, (yield* Clock.currentTimeMillis) - 1)
          const suspended = yield* makeTenant()
          const asleep = yield* suspended.withKey()
          yield* (yield* Organizations).setStatus(suspended.orgId, "suspended")

          const none = yield* callWith(operation, own, {})
          assert.deepStrictEqual([none.status, codeOf(none)], [401, "missing_api_key"])
          const { secret } = own.key
          const wrong = [
            bearer(`Basic ${secret}`),
            bearer("Bearer"),
            bearer(`Bearer ${secret} ${secret}`),
            bearer(secret),
            { key: "seatrial_short" },
            { key: secret.replace("seatrial_", "seatrail_") },
            { key: `${secret.slice(0, -1)}${secret.endsWith("a") ? "b" : "a"}` },
            { key: makeApiKey(crypto.getRandomValues(new Uint8Array(128))) },
            { key: revoked.secret },
            { key: expired.secret },
            { key: asleep.secret }
          ]
          const answers = yield* Effect.forEach(wrong, (credential) => callWith(operation, own, credential))
          for (const [index, answer] of answers.entries()) {
            assert.deepStrictEqual([answer.status, codeOf(answer)], [401, "invalid_api_key"], JSON.stringify(wrong[index]))
            // All of them get the same response, which does not reveal the reason.
            assert.deepStrictEqual(essence(answer), essence(answers[0] ?? answer))
          }

          const lacking = yield* own.withKey(without(operation.scopes))
          const refused = yield* callWith(operation, own, { key: lacking.secret })
          assert.deepStrictEqual([refused.status, codeOf(refused)], [403, "missing_scope"])
          assert.strictEqual(Option.getOrThrow(failureOf(refused)).param, operation.scopes[0]?.[0])
          for (const alternative of operation.scopes) {
            for (const scope of alternative) {
              const rest = yield* own.withKey(without([...operation.scopes.filter((other) => other !== alternative), [scope]]))
              assert.strictEqual((yield* callWith(operation, own, { key: rest.secret })).status, 403, `without ${scope}`)
            }
            const enough = yield* own.withKey(alternative)
            const right = yield* callWith(operation, own, { key: enough.secret })
            assert.strictEqual(right.status, operation.right, `${alternative}: ${right.text}`)
          }
        })
      )
    }

    it.effect("is ignored by public operations", () =>
      Effect.gen(function* () {
        const { own } = yield* Neighbours
        for (const operation of operations.filter((candidate) => candidate.scopes.length === 0)) {
          const plain = yield* callWith(operation, own, {})
          assert.strictEqual(plain.status, operation.right)
          for (const credential of [{ key: own.key.secret }, { key: "nonsense" }, bearer("Basic x"), bearer("")]) {
            assert.deepStrictEqual(essence(yield* callWith(operation, own, credential)), essence(plain), nameOf(operation))
          }
        }
      })
    )

    it.effect("without models:write cannot create a serving model", () =>
      Effect.gen(function* () {
        const { own } = yield* Neighbours
        const { secret } = yield* own.withKey(without([["models:write"]]))
        const headers = { "idempotency-key": "serves" }
        const body = (serve: object) => JSON.stringify({ model_id: own.modelId, ...serve })
        for (const serve of [{}, { serve: true }]) {
          const answer = yield* call({ method: "POST", path: "/v1/deployments", key: secret, headers, body: body(serve) })
          assert.deepStrictEqual([answer.status, Option.getOrThrow(failureOf(answer))], [403, { code: "missing_scope", param: "models:write" }])
        }
      })
    )
  })

  describe("another organization's record", () => {
    const kinds = { request: "req", receipt: "req", model: "mdl", deployment: "dep", audit: "aud", suspicion: "sus" } as const
    const body = "01890000000000000000000000"

    for (const operation of operations.filter((candidate) => candidate.id !== undefined)) {
      it.effect(`gets the response of a nonexistent or malformed ID from ${nameOf(operation)}`, () =>
        Effect.gen(function* () {
          const { foreign, own } = yield* Neighbours
          const kind = operation.id ?? "request"
          const ask = (id: string) => call({ ...rightCall(operation, id), key: own.key.secret })
          const theirs = yield* ask(foreign.records[kind])
          assert.deepStrictEqual([theirs.status, codeOf(theirs)], [404, "not_found"])
          const otherIds = [
            `${kinds[kind]}_${body}`,
            `${foreign.records[kind].slice(0, -1)}0`,
            foreign.records[kind].toUpperCase(),
            ...Object.values(foreign.records).filter((id) => !id.startsWith(kinds[kind])),
            "x",
            `${kinds[kind]}_`,
            "%00",
            "%F0%9F%98%80",
            "%27%20OR%201%3D1--",
            "x".repeat(8_000)
          ]
          for (const id of otherIds) assert.deepStrictEqual(essence(yield* ask(id)), essence(theirs), id)
        })
      )
    }

    for (const operation of operations.filter((candidate) => candidate.filters !== undefined)) {
      it.effect(`is in no page of ${nameOf(operation)} for any filter`, () =>
        Effect.gen(function* () {
          const { foreign, own } = yield* Neighbours
          const { servers } = yield* Stage
          const page = (query: string, key: string) => call({ method: "GET", path: `${operation.path}?${query}`, key })
          const all = yield* page("limit=200", own.key.secret)
          assert.include(all.text, own.slug.slice(0, 8))
          const foreignIds = { model_id: foreign.modelId, api_key_id: foreign.key.id, actor_user_id: foreign.userId }
          const prefixes = { model_id: "mdl", api_key_id: "key", actor_user_id: "usr" }
          for (const filter of operation.filters ?? []) {
            const theirs = yield* page(`${filter}=${foreignIds[filter]}`, own.key.secret)
            assert.strictEqual(theirs.text, '{"object":"list","data":[],"next_cursor":null}')
            assert.deepStrictEqual(essence(yield* page(`${filter}=${prefixes[filter]}_${body}`, own.key.secret)), essence(theirs))
          }
          // The other organization's cursor of the same server and list.
          const first = yield* servers[0].answer({ method: "GET", path: `${operation.path}?limit=1`, key: foreign.key.secret })
          const cursor = /"next_cursor":"([^"]+)"/.exec(first.text)?.[1]
          if (cursor === undefined) return assert.include(["/v1/org/requests", "/v1/requests"], operation.path)
          const stolen = yield* page(`cursor=${cursor}&limit=1`, own.key.secret)
          assert.deepStrictEqual([stolen.status, codeOf(stolen)], [400, "invalid_cursor"])
        })
      )
    }

    it.effect("cannot be redeployed, canceled or replayed", () =>
      Effect.gen(function* () {
        const { foreign, own } = yield* Neighbours
        const { servers } = yield* Stage
        const create = (key: string, input: object) =>
          call({ method: "POST", path: "/v1/deployments", key: own.key.secret, headers: { "idempotency-key": key }, body: JSON.stringify(input) })
        const again = yield* create("again", { model_id: foreign.modelId })
        assert.deepStrictEqual([again.status, codeOf(again)], [404, "not_found"])
        assert.deepStrictEqual(essence(yield* create("again", { model_id: `mdl_${body}` })), essence(again))
        assert.deepStrictEqual(essence(yield* create("again", { model_id: "nobody" })), essence(again))
        // Idempotency keys and model names are separate for each organization.
        const source = { kind: "model_hub", repo: "seatrial/tiny-chat" }
        const created = yield* create("zzforeignzz-serving", { source, model_name: "their-name" })
        assert.strictEqual(created.status, 201)
        const theirs = yield* servers[0].answer({
          method: "POST",
          path: "/v1/deployments",
          key: foreign.key.secret,
          headers: { "idempotency-key": "zzforeignzz-serving-2" },
          body: JSON.stringify({ source, model_name: "their-name" })
        })
        assert.strictEqual(theirs.status, 201)
        const { id } = bodyOf(DeploymentOperation, theirs)
        const cancelled = yield* call({ method: "POST", path: `/v1/deployments/${id}/cancel`, key: own.key.secret })
        assert.deepStrictEqual([cancelled.status, codeOf(cancelled)], [404, "not_found"])
        const left = yield* servers[1].answer({ method: "GET", path: `/v1/org/deployments/${id}`, key: foreign.key.secret })
        assert.strictEqual(bodyOf(DeploymentDetail, left).status, "screening")
      })
    )
  })

  describe("a call with two faults", () => {
    for (const operation of operations) {
      it.effect(`reports the one that is checked first: ${nameOf(operation)}`, () =>
        Effect.gen(function* () {
          const { own, strict } = yield* Neighbours
          const lacking = yield* own.withKey(without(operation.scopes))
          const can = possible(operation)
          const never = `${operation.id === undefined ? "x" : own.records[operation.id].slice(0, 4)}01890000000000000000000000`
          const mine = operation.id === undefined ? "" : own.records[operation.id]
          // The rate class depends on the operation, not on the body.
          const drain = strict.answer({ ...rightCall(operation, mine), ...(operation.body === undefined ? {} : { body: "{" }), key: own.key.secret })
          for (const [index, first] of can.entries()) {
            for (const second of can.slice(index)) {
              // The order of these two is undefined.
              if (first === "parameter" && second === "header") continue
              const wrong = new Set([first, second])
              const rate = wrong.has("rate")
              if (rate) yield* drain
              const key = wrong.has("key") ? "seatrial_nobody" : wrong.has("scope") ? lacking.secret : own.key.secret
              const ask = wrongCall(operation, mine, never, wrong)
              const answer = yield* call(operation.scopes.length === 0 ? ask : { ...ask, key }, rate ? strict : undefined)
              const [status, code] = responses[first]
              assert.strictEqual(answer.status, status, `${first} and ${second}: ${answer.text}`)
              assert.match(codeOf(answer), code, `${first} and ${second}`)
              if (status === 429) assert.match(String(answer.headers["retry-after"]), /^[1-9]\d*$/)
            }
          }
        })
      )
    }
  })

  it.effect("revoked, suspended and resumed keys take effect on every server", () =>
    Effect.gen(function* () {
      const { servers } = yield* Stage
      const keys = yield* ApiKeys
      const organizations = yield* Organizations
      const tenant = yield* makeTenant()
      const revoked = yield* tenant.withKey()
      const other = yield* tenant.withKey()
      const statusAt = (server: ServerProcess, key: string) =>
        Effect.map(server.answer({ method: "GET", path: "/v1/deployments", key }), ({ status }) => status)
      const everywhere = Effect.fnUntraced(function* (what: string, key: string, wanted: number) {
        const began = yield* Clock.currentTimeMillis
        // Caches expire after 30 s. An earlier change must come from a notification.
        yield* Effect.forEach(servers, (server) => eventually(what, statusAt(server, key), (status) => status === wanted), { concurrency: 2 }).pipe(
          Effect.timeout("28 seconds"),
          Effect.orDie
        )
        process.stdout.write(`${what} on both servers after ${(yield* Clock.currentTimeMillis) - began} ms\n`)
      })
      // Both servers have cached both keys.
      for (const key of [revoked, other]) yield* everywhere("a new key works", key.secret, 200)
      yield* keys.revoke(tenant.orgId, revoked.id)
      yield* everywhere("a revoked key is refused", revoked.secret, 401)
      assert.deepStrictEqual(yield* Effect.forEach(servers, (server) => statusAt(server, other.secret)), [200, 200])
      yield* organizations.setStatus(tenant.orgId, "suspended")
      yield* everywhere("a suspended organization is refused", other.secret, 401)
      yield* organizations.setStatus(tenant.orgId, "active")
      yield* everywhere("a resumed organization is served", other.secret, 200)
      assert.deepStrictEqual(yield* Effect.forEach(servers, (server) => statusAt(server, revoked.secret)), [401, 401])
    })
  )
})
