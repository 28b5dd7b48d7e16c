import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeTenant, Stage } from "./stage.ts"

const ErrorBody = Schema.Struct({
  error: Schema.Struct({ message: Schema.String, type: Schema.String, code: Schema.String, param: Schema.String })
})
const errorOf = (answer: Answer) => Schema.decodeUnknownSync(ErrorBody)(jsonOf(answer)).error

const page = ["cursor", "limit"]
const digits = [
  "",
  "-1",
  "+1",
  "%201",
  "1%20",
  "1.0",
  "1.5",
  "1e1",
  "0x10",
  "01",
  "00",
  "ten",
  "NaN",
  "Infinity",
  "1_0",
  "1,0",
  "%D9%A1",
  "99999999999999999999"
]
const time = [...digits, "9007199254740992", "2024-01-01", "2024-01-01T00:00:00.000Z"]
const text = (maximum: number) => ["", "a".repeat(maximum + 1), "%F0%9F%98%80".repeat(maximum + 1)]
const word = ["", "%00", "all", "null", "1", "running%20", "running,failed"]

/** Values of a parameter that are invalid in every list. */
const malformed: Readonly<Record<string, ReadonlyArray<string>>> = {
  cursor: text(256),
  limit: [...digits, "0", "201", "9007199254740991"],
  model_id: text(64),
  api_key_id: text(64),
  actor_user_id: text(64),
  q: text(120).slice(1),
  from: time,
  to: time,
  status: [...word, "SUCCESS", "Running", "screening"],
  visibility: [...word, "PUBLIC", "secret"],
  resource_type: [...word, "ORG", "webhook", "model"]
}

interface List {
  readonly path: string
  readonly parameters: ReadonlyArray<string>
  /** Values of `status` that belong to other lists. */
  readonly foreign?: ReadonlyArray<string>
  /** Valid queries that match nothing. */
  readonly empty: ReadonlyArray<string>
}

const requests: Omit<List, "path"> = {
  parameters: [...page, "model_id", "api_key_id", "status", "from", "to"],
  foreign: ["running", "succeeded", "completed", "refused", "pending", "200"],
  empty: ["", "status=server_error&from=0&to=9007199254740991", "api_key_id=nobody", "model_id=%00&limit=200", "from=9007199254740990", "limit=1"]
}
const deployments: Omit<List, "path"> = {
  parameters: [...page, "model_id", "status"],
  foreign: ["success", "activated", "cancelled", "active"],
  empty: [
    "",
    "status=stopped",
    "model_id=%00",
    "limit=200&status=running",
    `model_id=${"a".repeat(64)}`,
    "model_id='; DROP TABLE deployments; --".replaceAll(" ", "%20")
  ]
}
const lists: ReadonlyArray<List> = [
  { path: "/v1/requests", ...requests },
  { path: "/v1/org/requests", ...requests },
  { path: "/v1/deployments", ...deployments },
  { path: "/v1/org/deployments", ...deployments },
  {
    path: "/v1/org/models",
    parameters: [...page, "status", "visibility", "q"],
    foreign: ["success", "running", "deleted", "draft"],
    empty: [
      "",
      "status=pending",
      "status=active&visibility=public&q=a",
      "q",
      "q=",
      "q=&status=pending",
      "q=%00",
      "q=%25",
      "q=a%00b",
      `q=${"%F0%9F%98%80".repeat(120)}`,
      "q=%ED%A0%80",
      "limit=200"
    ]
  },
  { path: "/v1/org/suspicions", parameters: [...page], empty: ["limit=200"] },
  {
    path: "/v1/org/audit-events",
    parameters: [...page, "actor_user_id", "resource_type", "from", "to"],
    empty: [
      "to=1",
      "from=9007199254740990",
      "from=0&to=9007199254740991&resource_type=model_config",
      "actor_user_id=%00",
      "actor_user_id=nobody&limit=200",
      "actor_user_id=admin:%00"
    ]
  }
]

/** A value that every list with the parameter accepts. */
const fine: Readonly<Record<string, string>> = {
  limit: "5",
  cursor: "abc",
  model_id: "a",
  api_key_id: "a",
  actor_user_id: "a",
  q: "a",
  from: "1",
  to: "2",
  visibility: "public",
  resource_type: "org"
}

layer(layerStage(), { excludeTestServices: true })("the parameters of a list", (it) => {
  for (const { empty, foreign = [], parameters, path } of lists) {
    const refuses = Effect.fnUntraced(function* (key: string, query: string, param: string, code: string, message?: string) {
      const answer = yield* (yield* Stage).call("GET", `${path}?${query}`, { key })
      assert.strictEqual(answer.status, 400, query)
      assert.deepInclude(errorOf(answer), { code, param, type: "invalid_request_error", ...(message === undefined ? {} : { message }) }, query)
    })

    it.effect(`${path} describes valid values in its errors`, () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        for (const param of ["limit", "from", "to"].filter((name) => parameters.includes(name)))
          yield* refuses(key, `${param}=ten`, param, "invalid_parameter", `${param} must be a whole number in plain digits.`)
        yield* refuses(key, "limit=201", "limit", "invalid_parameter", "limit must be between 1 and 200.")
        if (parameters.includes("from"))
          yield* refuses(key, "from=9007199254740992", "from", "invalid_parameter", "from must be between 0 and 9007199254740991.")
      })
    )

    it.effect(`${path} accepts each of its parameters once`, () =>
      Effect.gen(function* () {
        const { call } = yield* Stage
        const { key } = yield* makeTenant()
        for (const param of parameters) {
          for (const value of malformed[param] ?? assert.fail(param)) yield* refuses(key, `${param}=${value}`, param, "invalid_parameter")
          if (param !== "q") yield* refuses(key, param, param, "invalid_parameter")
          const value = param === "status" ? (foreign[0] ?? "") : (fine[param] ?? assert.fail(param))
          const repeated = `${param} is given more than once.`
          yield* refuses(key, `${param}=${value}&${param}=${value}`, param, "invalid_parameter", repeated)
          yield* refuses(key, `${param}=&limit=7&${param}=${value}`, param, "invalid_parameter", repeated)
        }
        for (const value of foreign) yield* refuses(key, `status=${value}`, "status", "invalid_parameter")
        if (parameters.includes("from")) {
          for (const bounds of ["from=5&to=5", "from=5&to=4", "to=0&from=0", "from=9007199254740991&to=1"])
            yield* refuses(key, bounds, "to", "invalid_parameter")
        }
        for (const query of empty) {
          const answer = yield* call("GET", `${path}?${query}`, { key })
          assert.strictEqual(answer.status, 200, query)
          assert.deepStrictEqual(jsonOf(answer), { object: "list", data: [], next_cursor: null }, query)
        }
      })
    )

    it.effect(`${path} refuses all other parameters`, () =>
      Effect.gen(function* () {
        const { key } = yield* makeTenant()
        const otherParameters = Object.keys(malformed).filter((name) => !parameters.includes(name))
        for (const name of [
          ...otherParameters,
          "x",
          "X",
          "Limit",
          "limit[]",
          "limit%20",
          "cursor2",
          "__proto__",
          "constructor",
          "offset",
          "page",
          "order",
          "expand"
        ]) {
          yield* refuses(key, `${name}=1`, decodeURIComponent(name), "unknown_parameter")
        }
        yield* refuses(key, "X", "X", "unknown_parameter")
        yield* refuses(key, "x=1&x=2", "x", "unknown_parameter")
        yield* refuses(key, "=1", "", "unknown_parameter")
      })
    )
  }
})
