import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Hub } from "@seatrial/hub"
import { Runs } from "@seatrial/store"
import { ConfigProvider, Effect, Layer, Option, Redacted } from "effect"
import { screenRepository } from "../../src/work/screenRepository.ts"
import { hostClass, run } from "../observations.ts"

/** A hub that answers every request with this status, and with the code in `x-error-code`. */
const hubThatSays = (status: number, code: string | null) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly address: string; readonly close: () => void }>((resume) => {
      const server = createServer((_, response) => {
        response.writeHead(status, code === null ? {} : { "x-error-code": code })
        response.end("{}")
      })
      server.listen(0, "127.0.0.1", () => {
        const bound = server.address()
        const port = typeof bound === "object" && bound !== null ? bound.port : 0
        resume(Effect.succeed({ address: `http://127.0.0.1:${port}`, close: () => server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

describe("a repository that the hub does not show, for the run of an applied object", () => {
  const shared = Option.some(Redacted.make("hf_shared"))
  const cases: ReadonlyArray<readonly [what: string, status: number, code: string | null, token: typeof shared, says: ReadonlyArray<string>]> = [
    [
      "gated, without a shared token",
      401,
      "GatedRepo",
      Option.none(),
      [
        "no_hub_connection",
        "the organization acme shares no hub token",
        "seatrial admin hub-connections set --org acme --email",
        "seatrial admin hub-connections share --org acme --email"
      ]
    ],
    [
      "missing or private, without a token",
      404,
      "RepoNotFound",
      Option.none(),
      ["repository_not_found", "the hub token that the organization shares", "hub-connections share --org acme"]
    ],
    ["missing or private, with a token", 404, "RepoNotFound", shared, ["repository_not_found", "the hub token that the organization shares"]],
    [
      "gated, to the shared token",
      403,
      "GatedRepo",
      shared,
      ["access_required", "The hub token that the organization acme shares may not read", "share --org acme"]
    ],
    [
      "with a shared token that was revoked",
      401,
      null,
      shared,
      ["access_required", "does not accept the hub token that the organization acme shares", "Store a new hub token"]
    ]
  ]
  for (const [what, status, code, token, says] of cases) {
    it.live(`${what}, names the remedy for it, and no API key`, () =>
      Effect.gen(function* () {
        const { address } = yield* hubThatSays(status, code)
        const error = yield* screenRepository({ ...run, startedBy: null }, [hostClass]).pipe(
          Effect.provide([
            Hub.layer.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ HF_ENDPOINT: address })))),
            Layer.mock(Runs)({ hubToken: () => Effect.succeed(token) })
          ]),
          Effect.flip
        )
        const text = error._tag === "WorkRefused" ? `${error.failure.code}: ${error.failure.text}` : error._tag
        for (const part of says) assert.include(text, part)
        assert.notMatch(text, /API key|that user/)
      }).pipe(Effect.scoped)
    )
  }
})
