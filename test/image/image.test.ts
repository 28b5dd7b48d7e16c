import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Effect, Redacted, Schema } from "effect"
import { afterAll, beforeAll, inject } from "vitest"
import { readFileOfLayers, readImage } from "../../tools/image/readArchive.ts"
import { archive, buildImage, buildImageFromCopy, leaveOldBase, listFiles, runInImage, storedImages, unpack } from "./BuiltImage.ts"

const Bom = Schema.fromJsonString(
  Schema.Struct({
    components: Schema.Array(Schema.Struct({ name: Schema.String, version: Schema.optionalKey(Schema.String), group: Schema.optionalKey(Schema.String) })),
    compositions: Schema.Array(Schema.Struct({ aggregate: Schema.String }))
  })
)
const Installed = Schema.fromJsonString(
  Schema.Struct({
    packages: Schema.Record(Schema.String, Schema.Struct({ version: Schema.optionalKey(Schema.String), link: Schema.optionalKey(Schema.Boolean) }))
  })
)

describe("the image that npm run image builds", () => {
  const target = mkdtempSync(join(tmpdir(), "seatrial-image-test-"))
  let image: ReturnType<typeof buildImage>
  beforeAll(() => {
    leaveOldBase()
    image = buildImage()
    unpack(target)
  }, 1_200_000)
  afterAll(() => rmSync(target, { recursive: true, force: true }))

  it("has at most 300 MB, and the user, command and name that the chart expects", () => {
    assert.isAtMost(image.sizeBytes, 300_000_000)
    const { config } = readImage(archive)
    assert.strictEqual(config.User, "2000:2000")
    assert.deepStrictEqual(config.Entrypoint, ["seatrial"])
    assert.match(image.name, /^localhost\/seatrial:[0-9a-f]{16}$/)
  })

  it("has in no layer a setuid program, a package manager, a file that user 2000 may change, or a file that only builds and tests read", () => {
    const files = listFiles()
    const find = (holds: (file: (typeof files)[number]) => boolean) => files.filter(holds).map(({ mode, path }) => `${mode} ${path}`)
    assert.isAbove(files.length, 1_000)
    assert.deepStrictEqual(
      find(({ mode }) => /s/iu.test(mode.slice(1))),
      []
    )
    assert.deepStrictEqual(
      find(({ owner }) => owner !== "0/0"),
      []
    )
    assert.deepStrictEqual(
      find(({ mode, path }) => mode[0] !== "l" && mode[8] === "w" && !["tmp/", "var/tmp/"].includes(path)),
      []
    )
    const tools = /(^|\/)(npm|npx|corepack|yarn|pnpm|apt|apt-get|dpkg|perl|python3?|gcc|make)$/u
    assert.deepStrictEqual(
      find(({ mode, path }) => mode[0] !== "d" && tools.test(path)),
      []
    )
    assert.deepStrictEqual(
      find(({ path }) => /\/node_modules\/.*\.(ts|mts|cts|map|md)$/u.test(path) && !/\/licen[cs]e|\/notice|\/copying/iu.test(path)),
      []
    )
    assert.deepStrictEqual(
      find(({ path }) => /^opt\/seatrial\/(packages\/(local|[^/]+\/(test|sample|standin|bin))|tools)\//u.test(path)),
      []
    )
  })

  it.live("runs every program as user 2000 on a read-only root", () =>
    Effect.gen(function* () {
      const identity = runInImage(target, ["sh", "-c", "id -u; id -un; touch /opt/seatrial/x /etc/x"])
      assert.match(identity.output, /^2000\nseatrial\n/u)
      assert.strictEqual(identity.output.match(/Read-only file system/gu)?.length, 2, identity.output)
      const help = runInImage(target, ["seatrial", "--help"])
      assert.strictEqual(help.status, 0, help.output)
      const programs = ["server", "operator", "gateway", "fetch", "copy-weights", "check-weights", "merge-weights", "clean-weights", "migrate", "admin"]
      for (const program of programs) {
        const ran = runInImage(target, ["seatrial", program, "--help"])
        assert.strictEqual(ran.status, 0, ran.output)
      }
      const engine = runInImage(target, ["seatrial-reference-engine", "--help"])
      assert.strictEqual(engine.status, 0, engine.output)
      const database = Redacted.value(yield* makeEmptyDatabase(inject("postgres")))
      const migrated = runInImage(target, ["seatrial", "migrate"], { DATABASE_URL: database })
      assert.strictEqual(migrated.status, 0, migrated.output)
    }).pipe(Effect.scoped)
  )

  it("is described by the bill of materials: each Debian package and each installed npm package", () => {
    const folder = join(target, "tmp/sbom")
    execFileSync(process.execPath, ["tools/supplyChain/sbom.ts", "--image", archive, folder], { cwd: join(import.meta.dirname, "../.."), stdio: "pipe" })
    const { components, compositions } = Schema.decodeUnknownSync(Bom)(readFileSync(join(folder, "image.cdx.json"), "utf8"))
    assert.strictEqual(compositions[0]?.aggregate, "complete")
    const listed = new Set(components.map(({ group, name, version }) => `${group === undefined ? name : `${group}/${name}`}@${version}`))
    const debian = readFileOfLayers(archive, "var/lib/dpkg/status").match(/^Package: .*$/gmu) ?? []
    assert.isAbove(debian.length, 5)
    for (const line of debian)
      assert.isTrue(
        [...listed].some((each) => each.startsWith(`${line.slice("Package: ".length)}@`)),
        line
      )
    const installed = readFileSync(join(target, "opt/seatrial/node_modules/.package-lock.json"), "utf8")
    const packages = Object.entries(Schema.decodeUnknownSync(Installed)(installed).packages).flatMap(([path, { link, version }]) =>
      link === true || !path.includes("node_modules/") ? [] : [`${path.split("node_modules/").at(-1)}@${version}`]
    )
    assert.isAbove(packages.length, 50)
    assert.deepStrictEqual(
      packages.filter((each) => !listed.has(each)),
      []
    )
  })

  it("leaves one image in the storage, its own base, and removes those of earlier builds", () => {
    const [base, ...others] = storedImages()
    assert.deepStrictEqual(others, [])
    assert.notStrictEqual(base, "localhost/seatrial-base:old")
  })

  it("has the same digest if another checkout of the same files builds it", () => {
    assert.deepStrictEqual(buildImageFromCopy(), image)
  })
})
