import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { built, type Machine, missingRequirements, programs } from "../node/requirements.ts"
import { takeLock } from "../node/takeMachine.ts"

const folder = mkdtempSync(join(tmpdir(), "seatrial-requirements-"))
afterAll(() => rmSync(folder, { recursive: true }))
const filled = (name: string, files: ReadonlyArray<string>) => {
  const path = join(folder, name)
  mkdirSync(path, { recursive: true })
  for (const file of files) writeFileSync(join(path, file), "")
  return path
}
const complete: Machine = {
  platform: "linux",
  isRoot: true,
  folders: [join(folder, "absent"), filled("programs", Object.keys(programs))],
  networkPlugins: filled("cni", ["ptp"]),
  bin: filled("bin", built)
}
const without = (name: string, all: ReadonlyArray<string>, ...missing: ReadonlyArray<string>) =>
  filled(
    name,
    all.filter((one) => !missing.includes(one))
  )

describe("a machine for real nodes", () => {
  const cases: ReadonlyArray<readonly [what: string, change: Partial<Machine>, says: ReadonlyArray<string>]> = [
    ["nothing", {}, []],
    ["Linux", { platform: "darwin" }, ["Nodes need Linux."]],
    ["root", { isRoot: false }, ["Nodes need root: they create namespaces, control groups and mounts."]],
    [
      "programs and plugins of Debian",
      { folders: [without("few", Object.keys(programs), "ip", "nft")], networkPlugins: join(folder, "absent") },
      ["Packages are missing. On Debian: apt-get install nftables iproute2 containernetworking-plugins"]
    ],
    ["what tools/build.sh builds", { bin: without("partly", built, "kubelet", "pause") }, ["tools/bin lacks kubelet, pause. Run: tools/build.sh node"]]
  ]
  for (const [what, change, says] of cases) it(`lacks ${what}`, () => assert.deepStrictEqual(missingRequirements({ ...complete, ...change }), says))

  it("is checked by CI for the same programs before the suite starts", async () => {
    const script = await readFile(join(import.meta.dirname, "../../.ci/run"), "utf8")
    const checked = /for program in ([a-z ]+); do command -v/u.exec(script)?.[1]?.split(" ") ?? []
    assert.includeMembers(checked, Object.keys(programs))
    assert.include(script, "/usr/lib/cni/ptp")
  })

  it.effect("is used by one run at a time, and by the next one afterward", () =>
    Effect.gen(function* () {
      const lock = `\0${folder}`
      const use = Effect.scoped(takeLock(lock))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* takeLock(lock)
          const second = yield* Effect.exit(use)
          assert.include(Exit.isFailure(second) ? Cause.pretty(second.cause) : "", "Another run of npm run test:node uses this machine's network.")
        })
      )
      yield* use
    })
  )
})
