import { Unreadable } from "./failures.ts"
import { JsonNumber, JsonScanner, type JsonVisitor } from "./JsonScanner.ts"
import type { Sink } from "./safetensors.ts"
import { TensorGroups } from "./TensorGroups.ts"
import { maxTensors, TensorName, TensorNames } from "./TensorNames.ts"

/** Maximum length of an index in bytes. The index of the largest current models, with 280,000 tensors, is shorter. */
export const maxIndexBytes = 32 * 1024 * 1024
/** Maximum number of weight files. The largest current models have a few hundred. */
export const maxShards = 1_000

/** Beyond any real model; bounds the memory that an index can use. */
const maxKinds = 20_000

/** The tensors that an index places in one file. */
export interface Placed {
  /** From 1, as `names` numbers files. */
  readonly number: number
  tensors: number
  /** Total length of the names. */
  nameBytes: number
  /** Groups without types, shapes and sizes, which the index does not contain. */
  readonly groups: TensorGroups
}

/** Which file each tensor is in. */
export interface WeightIndex {
  readonly files: ReadonlyMap<string, Placed>
  readonly names: TensorNames
  /** Total bytes of all tensors by the index, if it states them. */
  readonly totalBytes: number | null
}

/** Collects the places of an index. `listed`: the files that the repository has. */
class IndexVisitor implements JsonVisitor {
  readonly files = new Map<string, Placed>()
  readonly names = new TensorNames()
  totalBytes: number | null = null
  hasMap = false
  readonly #listed: ReadonlySet<string>
  readonly #fail: (what: string) => never
  readonly #tensorName = new TensorName()
  #tensors = 0
  #kinds = 0
  #inMap = false
  #inMetadata = false
  #inTotal = false
  #tensor = ""

  constructor(listed: ReadonlySet<string>, fail: (what: string) => never) {
    this.#listed = listed
    this.#fail = fail
  }

  ignores(depth: number): boolean {
    return depth > 2 || (depth === 2 && !this.#inMap && !this.#inMetadata)
  }

  begin(kind: "object" | "list", depth: number): void {
    if (depth === 0 && kind === "list") this.#fail("is not a JSON object")
    if (this.#inMap && (depth >= 2 || (depth === 1 && kind === "list"))) this.#fail("has no map from tensors to files")
  }

  end(depth: number): void {
    if (depth === 1) this.#inMap = false
  }

  name(name: string, depth: number): void {
    if (depth === 1) {
      this.#inMap = name === "weight_map"
      this.#inMetadata = name === "metadata"
      if (this.#inMap && this.hasMap) this.#fail("has a duplicate member")
      this.hasMap ||= this.#inMap
    } else if (depth === 2 && this.#inMap) this.#tensor = name
    this.#inTotal = depth === 2 && this.#inMetadata && name === "total_size"
  }

  value(value: string | boolean | null | JsonNumber, depth: number): void {
    if (depth === 0) this.#fail("is not a JSON object")
    if (this.#inTotal && value instanceof JsonNumber && Number.isSafeInteger(value.value)) this.totalBytes = value.value
    if (!this.#inMap) return
    if (depth > 1 && typeof value === "string") this.#place(value)
    else this.#fail("has no map from tensors to files")
  }

  /** Places the current tensor in a file. */
  #place(file: string): void {
    const placed = this.files.get(file) ?? this.#addFile(file)
    if (!this.#tensorName.read(this.#tensor)) this.#fail("names a tensor in characters that no engine accepts")
    if (++this.#tensors > maxTensors) this.#fail(`names more than ${maxTensors} tensors`)
    if (!this.names.place(this.#tensorName, placed.number)) this.#fail("has a duplicate member")
    placed.tensors++
    placed.nameBytes += this.#tensor.length
    const { size } = placed.groups
    placed.groups.add(this.#tensorName, "", [], 0)
    if (placed.groups.size > size && ++this.#kinds > maxKinds) this.#fail("names more kinds of tensors than any model has")
  }

  #addFile(file: string): Placed {
    if (!this.#listed.has(file)) this.#fail("names files that are not in its folder")
    if (this.files.size === maxShards) this.#fail(`names more than ${maxShards} weight files`)
    const placed: Placed = { number: this.files.size + 1, tensors: 0, nameBytes: 0, groups: new TensorGroups() }
    this.files.set(file, placed)
    return placed
  }
}

/**
 * Reads an index (`model.safetensors.index.json`) as it arrives. Fails if it names a tensor twice, or a file that is
 * not in `listed`. Its memory does not grow with the number of experts per layer.
 */
export const scanIndex = (of: string, listed: ReadonlySet<string>): Sink<WeightIndex> => {
  const fail = (what: string): never => {
    throw new Unreadable({ reason: `${of} ${what}.` })
  }
  const visitor = new IndexVisitor(listed, fail)
  const scanner = new JsonScanner(of, visitor)
  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      const { files, hasMap, names, totalBytes } = visitor
      if (!hasMap) fail("has no map from tensors to files")
      if (files.size === 0) fail("names no tensor")
      return { files, names, totalBytes }
    }
  }
}
