import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { compareLockfiles } from "../../tools/supplyChain/compareLockfiles.ts"
import { debianComponents, imageSbom, NpmSbom, reachable } from "../../tools/supplyChain/imageSbom.ts"
import { type LockedPackage, readLockfile } from "../../tools/supplyChain/lockfile.ts"

const read = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8")
const locked = readLockfile(read("package-lock.json"))

describe("the lock file", () => {
  it("has the hash of each package, also of builds for other platforms", () => {
    assert.isAbove(locked.length, 400)
    const open = locked.filter(({ integrity }) => integrity === null || !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity))
    assert.deepStrictEqual(open, [])
  })
})

describe("the bill of materials", () => {
  const npm = Schema.decodeUnknownSync(NpmSbom)(
    JSON.stringify({
      specVersion: "1.5",
      serialNumber: "urn:uuid:0",
      metadata: { timestamp: "2026-01-01T00:00:00Z" },
      components: ["server@1", "effect@4", "deep@2", "vitest@5"].map((ref) => ({ "bom-ref": ref, name: ref.split("@")[0], hashes: [] })),
      dependencies: [
        { ref: "server@1", dependsOn: ["effect@4"] },
        { ref: "effect@4", dependsOn: ["deep@2"] },
        { ref: "vitest@5", dependsOn: ["deep@2"] }
      ]
    })
  )
  const status =
    "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9+deb12u9\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n"

  it("lists the direct and transitive dependencies of the product with all npm metadata, without development dependencies", () => {
    const { components, dependencies } = reachable(npm, ["server@1"])
    assert.deepStrictEqual(components, npm.components.slice(0, 3))
    assert.deepStrictEqual(dependencies, npm.dependencies.slice(0, 2))
    assert.deepStrictEqual(reachable(npm, ["server@1"], ["effect@4"]).components, npm.components.slice(0, 1))
  })

  it("of the image contains the base image by digest, Node and the installed Debian packages, and states if those are unknown", () => {
    assert.deepStrictEqual(
      debianComponents(status).map(({ purl }) => purl),
      ["pkg:deb/debian/libc6@2.36-9%2Bdeb12u9?arch=amd64"]
    )
    const of = (dpkgStatus: string | null) => imageSbom({ npm, version: "1.0.0", containerfile: read("Containerfile"), dpkgStatus })
    const [, digest] = /@sha256:([0-9a-f]{64})$/mu.exec(read("Containerfile")) ?? []
    assert.nestedPropertyVal(of(status), "components[0].hashes[0].content", digest)
    assert.nestedPropertyVal(of(status), "components[1].name", "node")
    assert.nestedPropertyVal(of(status), "components[2].name", "libc6")
    assert.nestedPropertyVal(of(status), "compositions[0].aggregate", "complete")
    assert.nestedPropertyVal(of(null), "compositions[0].aggregate", "incomplete")
  })
})

describe("release notes", () => {
  const one = (name: string, version: string, isDev = false): LockedPackage => ({
    path: `node_modules/${name}`,
    name,
    version,
    integrity: null,
    isDev,
    isOptional: false,
    os: null,
    cpu: null,
    libc: null
  })

  it("list each added, removed or changed dependency, separately for the product and development", () => {
    const before = [one("effect", "4.1.0"), one("undici", "7.0.0"), one("vitest", "5.0.0", true)]
    const after = [one("effect", "4.1.0"), one("effect", "4.2.0"), one("vitest", "5.1.0", true), one("yaml", "2.0.0")]
    assert.deepStrictEqual(compareLockfiles(before, after), [
      "### Dependencies of the product",
      "",
      "- `effect` 4.1.0 to 4.1.0, 4.2.0",
      "- Removed `undici` 7.0.0",
      "- Added `yaml` 2.0.0",
      "",
      "### Dependencies for development",
      "",
      "- `vitest` 5.0.0 to 5.1.0"
    ])
    assert.deepStrictEqual(compareLockfiles(before, before), [
      "### Dependencies of the product",
      "",
      "None.",
      "",
      "### Dependencies for development",
      "",
      "None."
    ])
  })
})
