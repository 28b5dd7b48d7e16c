import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { IdempotencyKey } from "@seatrial/api"
import { DeploymentId, KeyId, scopes, workingPhases } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { CliError } from "effect/cli"
import { abbreviateScopes } from "../src/admin/keys.ts"
import { unknownClass } from "../src/admin/reservations.ts"
import { checksInShort } from "../src/follow.ts"
import { outputExitCode } from "../src/guardOutput.ts"
import { endedWithoutStopping, readLocalState } from "../src/localState.ts"
import { escapeUnsafe, PlainText, safeJson } from "../src/plainText.ts"
import { linesOf, tableOf } from "../src/readable.ts"
import { servingOf } from "../src/servingFlags.ts"
import { formatUsageErrors } from "../src/UsageError.ts"
import { waitingAdvice } from "../src/waitingAdvice.ts"
import { withdrawnNote } from "../src/withdrawnNote.ts"

describe("a waiting run", () => {
  it("is explained only in the two phases that can take long", () =>
    assert.deepStrictEqual(
      workingPhases.filter((phase) => waitingAdvice(phase, "dep_x") !== undefined),
      ["waiting", "queued"]
    ))
  it("lists what its owner and the cluster administrator can do", () => {
    const advice = waitingAdvice("queued", "dep_x") ?? ""
    for (const remedy of ["seatrial cancel dep_x", "--host-class", "add GPUs"]) assert.include(advice, remedy)
  })
})

describe("an activated run", () => {
  const id = Schema.decodeUnknownSync(DeploymentId)("dep_01m83hygpbf3xt6btsrq0196xn")
  const answered = { name: "answers", passed: true, detail: "all" }
  const failed = { name: "tool_strict", passed: false, detail: "2 of 6 answers" }
  const suite = { name: "suite", passed: true, detail: "seatrial-core 7: 2 run, 1 not confirmed, so not served (json_mode), 1 s" }

  it("lists the capabilities that its trial withdrew, with the reason", () =>
    assert.deepStrictEqual(withdrawnNote({ id, checks: [answered, failed, suite] })?.split("\n"), [
      "The trial did not confirm these capabilities, so they are not served:",
      "  tool_strict  2 of 6 answers",
      `\`seatrial status ${id}\` shows every check, docs/reference/trial-checks.md explains them, and \`seatrial catalog --own --json\` lists what is served.`
    ]))
  it("has no note if no check failed", () => assert.isUndefined(withdrawnNote({ id, checks: [answered, suite] })))
  it("shows the summary of its trial unchanged, which names the checks without a row", () => {
    assert.deepStrictEqual(checksInShort([answered, failed, suite]), { checks: "2 of 3 passed", trial: suite.detail })
    assert.deepStrictEqual(checksInShort([]), { checks: null, trial: null })
  })
})

describe("text that a terminal would interpret", () => {
  const evil = "a\u001b[31mred\u202eb\u0085"
  const shown = "a\\u001b[31mred\\u202eb\\u0085"
  it("is escaped in tables, records and JSON, and JSON keeps its value", () => {
    assert.deepStrictEqual(tableOf([{ name: evil }]), ["NAME", shown])
    assert.deepStrictEqual(linesOf({ name: evil, [evil]: { [evil]: [evil] } }), [
      `name${" ".repeat(shown.length - 4)}  ${shown}`,
      `${shown}  ${shown}  ${shown}`
    ])
    assert.strictEqual(escapeUnsafe(safeJson({ name: evil }).replaceAll("\n", "")), safeJson({ name: evil }).replaceAll("\n", ""))
    assert.deepStrictEqual(JSON.parse(safeJson({ name: evil })), { name: evil })
  })
  it("is refused in a name, as are blank names", () => {
    assert.deepStrictEqual([evil, "two\nlines", " ", "", "Zoë 東京"].map(Schema.is(PlainText)), [false, false, false, false, true])
  })
})

describe("wrong use", () => {
  const wrong = (expected: string) => new CliError.InvalidValue({ option: "gpus", value: "\u001bx", expected, kind: "flag" })
  it("is reported on one line with the flag and the expected value, followed by the help command", () =>
    assert.strictEqual(
      formatUsageErrors(["seatrial", "admin", "limits"], [wrong("Schema validation failed: Expected a number of GPUs")]),
      'Invalid value for flag --gpus: "\\u001bx". Expected a number of GPUs\nRun `seatrial admin limits --help` for help.'
    ))
  it("is one line for an unknown command or flag, with a suggestion", () => {
    const command = new CliError.UnknownSubcommand({ subcommand: "deplyo", parent: ["seatrial"], suggestions: ["deploy"] })
    const flag = new CliError.UnrecognizedOption({ option: "--limt", command: ["seatrial", "deployments", "list"], suggestions: ["--limit"] })
    for (const [error, hint] of [
      [command, "deploy"],
      [flag, "--limit"]
    ] as const) {
      const [first = "", ...rest] = formatUsageErrors(["seatrial"], [error]).split("\n")
      assert.match(first, new RegExp(`Did you mean this\\? ${hint}$`))
      assert.deepStrictEqual(rest, ["Run `seatrial --help` for help."])
    }
  })
  it("of IDs and keys does not mention regular expressions", () => {
    for (const schema of [KeyId, IdempotencyKey]) assert.match(String(Schema.decodeUnknownExit(schema)("ö")), /Expected (?:an id|1 to 128)/u)
  })
})

describe("serving flags", () => {
  const none = Option.none<never>()
  const nothing = {
    hostClass: none,
    runtime: none,
    maxContext: none,
    kvCacheDtype: none,
    holdSeconds: none,
    yarnFactor: none,
    yarnOriginalContext: none,
    engineFlags: []
  }
  it.effect("become settings of the contract, and flags that are not set are omitted", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* servingOf(nothing), {})
      const flags = {
        ...nothing,
        kvCacheDtype: Option.some("fp8" as const),
        holdSeconds: Option.some(0),
        yarnFactor: Option.some(2),
        yarnOriginalContext: Option.some(4096),
        engineFlags: ["max-num-seqs=64", "eager=true", "chat-template=a=b", '__proto__="x"']
      }
      const engine_flags = JSON.parse('{"max-num-seqs":64,"eager":true,"chat-template":"a=b","__proto__":"x"}')
      const wanted = { kv_cache_dtype: "fp8", hold_seconds: 0, yarn: { factor: 2, original_context: 4096 }, engine_flags }
      assert.deepStrictEqual<unknown>(yield* servingOf(flags), wanted)
    })
  )
  const refused = [
    ["without =", { engineFlags: ["eager"] }, /eager is not name=value/],
    ["set twice", { engineFlags: ["a=1", "a=2"] }, /a is set more than once/],
    ["of YaRN without its factor", { yarnOriginalContext: Option.some(1) }, /--yarn-factor/]
  ] as const
  for (const [what, flags, says] of refused) {
    it.effect(`${what} are wrong use`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(servingOf({ ...nothing, ...flags }))
        assert.match(error.message, says)
        assert.strictEqual(error.exitCode, 2)
      })
    )
  }
})

it("a table abbreviates scopes", () =>
  assert.deepStrictEqual([scopes, ["audit:read"], scopes.slice(0, 3), []].map(abbreviateScopes), [
    "all",
    "audit:read",
    `3 of ${scopes.length}`,
    `0 of ${scopes.length}`
  ]))

it("a reservation for an unknown host class lists the existing classes", () => {
  assert.match(unknownClass("nope", ["h100", "l40s"]), /no host class nope; existing classes: h100, l40s/)
  assert.match(unknownClass("nope", []), /no other host class exists/)
})

it("a failed write exits with 141 if the reader has closed the pipe, otherwise with 1", () =>
  assert.deepStrictEqual(
    [outputExitCode(Object.assign(new Error(), { code: "EPIPE" })), outputExitCode(Object.assign(new Error(), { code: "ENOSPC" }))],
    [141, 1]
  ))

describe("a system started in a folder", () => {
  const folder = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-state-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  // Linux has no process IDs this high.
  const cases = [
    ["runs", process.pid, true, false],
    ["ended unexpectedly", 2 ** 30, false, true]
  ] as const
  for (const [promise, pid, runs, ended] of cases) {
    it.effect(`is detected: it ${promise}`, () =>
      Effect.gen(function* () {
        const path = yield* folder
        assert.deepStrictEqual([Option.isSome(readLocalState(path)), endedWithoutStopping(path)], [false, false])
        writeFileSync(join(path, "local.json"), JSON.stringify({ address: "http://127.0.0.1:1", api_key: "k", kubeconfig: "", pid: String(pid) }))
        assert.deepStrictEqual([Option.isSome(readLocalState(path)), endedWithoutStopping(path)], [runs, ended])
      }).pipe(Effect.scoped)
    )
  }
})
