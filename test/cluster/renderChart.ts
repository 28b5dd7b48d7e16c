import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { parseAllDocuments } from "yaml"

const root = join(import.meta.dirname, "../..")

interface Rendering {
  /** Name of the release. */
  readonly release?: string
  readonly namespace?: string
  /** A packaged chart in place of the folder. */
  readonly chart?: string
  /** Further arguments of `helm template`. */
  readonly args?: ReadonlyArray<string>
}

/** What `helm template` prints with these values; throws what it says if it refuses them. */
export const renderText = (
  values: unknown,
  { args = [], chart = join(root, "charts/seatrial"), namespace = "seatrial", release = "seatrial" }: Rendering = {}
): string =>
  execFileSync(join(root, "tools/bin/helm"), ["template", release, chart, "--namespace", namespace, "--values", "-", ...args], {
    input: JSON.stringify(values),
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    stdio: ["pipe", "pipe", "pipe"]
  })

/** Every object of the chart with these values, as `Kind/name` and its fields. */
export const render = (values: unknown, rendering?: Rendering) => {
  const objects = parseAllDocuments(renderText(values, rendering), { uniqueKeys: true }).filter((document) => document.contents !== null)
  return {
    all: objects.map((document) => Schema.decodeUnknownSync(Schema.Unknown)(document.toJS())),
    kinds: objects.map((document) => `${document.get("kind")}/${document.getIn(["metadata", "name"])}`),
    read: (object: string, ...path: ReadonlyArray<string>): unknown => {
      const [kind, name] = object.split("/")
      const found = objects.find((document) => document.get("kind") === kind && document.getIn(["metadata", "name"]) === name)
      assert.isDefined(found, object)
      return Schema.decodeUnknownSync(Schema.Unknown)(path.reduce<unknown>((value, key) => Object(value)[key], found?.toJS()))
    }
  }
}
