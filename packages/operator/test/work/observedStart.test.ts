import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Pod } from "@seatrial/kube"
import { Schema } from "effect"
import { decide } from "../../src/decide/decide.ts"
import { enginePod } from "../../src/objects/enginePod.ts"
import { judged } from "../../src/work/checkEngine.ts"
import { observedStart } from "../../src/work/observedStart.ts"
import { adapted } from "../adapted.ts"
import { observationOf, pod, podClass, report, revision, run, withRevision } from "../observations.ts"

const settings = { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] }
const engine = engineFor("reference") ?? assert.fail()
const copyState = { running: false, done: true, endedAt: 0, failures: 0, failure: null, final: false, progress: null }
const podOf = (of: typeof revision) => enginePod({ run, revision: of, podClass, engine, settings, weightsClaim: "weights" })
/** The start of a pod with that JSON text, as its API server would return it. */
const startOf = (text: string, of = revision, change: Partial<typeof pod> = {}) =>
  observedStart(Schema.decodeUnknownSync(Pod.schema)(JSON.parse(text)), { ...pod, copy: copyState, ...change }, of)
const spelled = (of = revision) => JSON.stringify(podOf(of))

describe("how an engine was started", () => {
  it("is read from its pod: files that were verified against the commit, mounted read-only, offline, from the commit's folder", () => {
    assert.deepStrictEqual(startOf(spelled()), { verifiedFiles: 1, readOnly: true, offline: true, localPath: true, ownImage: null })
    // The files of both commits of an adapter.
    assert.strictEqual(startOf(spelled(adapted), adapted).verifiedFiles, 2)
  })

  const commit = revision.facts.commit
  const changes: ReadonlyArray<readonly [what: string, from: string | RegExp, to: string, lost: "verifiedFiles" | "readOnly" | "offline" | "localPath"]> = [
    ["another list of files was checked", /manifest=[0-9a-f]{64}/, `manifest=${"0".repeat(64)}`, "verifiedFiles"],
    ["its files can be written to", /,"readOnly":true\},\{"name":"scratch"/, '},{"name":"scratch"', "readOnly"],
    ["it may read from the hub", '"HF_HUB_OFFLINE","value":"1"', '"HF_HUB_OFFLINE","value":"0"', "offline"],
    ["it was given another folder", `--model=/models/seatrial/tiny-chat/${commit}`, `--model=/models/seatrial/tiny-chat/${"f".repeat(40)}`, "localPath"]
  ]
  for (const [what, from, to, lost] of changes) {
    it(`shows if ${what}`, () => {
      const text = spelled()
      const changed = text.replace(from, to)
      assert.notStrictEqual(changed, text)
      const start = startOf(changed)
      assert.deepStrictEqual({ ...start, [lost]: null }, { ...startOf(text), [lost]: null })
      assert.isTrue(start[lost] === false || start[lost] === null, lost)
    })
  }

  it("shows no files before they were checked, or of a missing pod, and identifies its image only by digest", () => {
    assert.isNull(startOf(spelled(), revision, { copy: { ...copyState, done: false } }).verifiedFiles)
    assert.deepStrictEqual(observedStart(undefined, pod, revision), { verifiedFiles: null, readOnly: false, offline: false, localPath: false, ownImage: null })
    const digest = `sha256:${"a".repeat(64)}`
    const pinned = { ...revision, engineDigest: digest }
    assert.isTrue(startOf(spelled(), pinned, { imageDigest: digest }).ownImage)
    assert.isFalse(startOf(spelled(), pinned, { imageDigest: `sha256:${"b".repeat(64)}` }).ownImage)
    assert.isNull(startOf(spelled(), pinned, { imageDigest: null }).ownImage)
  })
})

describe("a capability that failed its check", () => {
  const withdrawn = {
    ...report,
    outcomes: [{ name: "json_mode", class: "capability" as const, outcome: "failed" as const, detail: "0 of 2 are objects" }],
    withdrawn: ["json_mode"]
  }
  const after = (failed: "withdraw" | "fail") => decide(observationOf("checking", { pod }, withRevision({ checks: judged(withdrawn, failed) })), 0)

  it("is withdrawn from the model, or fails the run if the installation is configured so", () => {
    assert.match(after("withdraw").message, /1 capability withdrawn/)
    assert.match(after("fail").message, /^checks_failed: json_mode: 0 of 2 are objects\./)
    assert.strictEqual(judged(report, "fail"), report)
  })
})
