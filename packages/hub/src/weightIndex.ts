import { Unreadable } from "./failures.ts"
import { JsonNumber, JsonScanner } from "./JsonScanner.ts"
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

/**
 * Reads an index (`model.safetensors.index.json`) as it arrives. Fails if it names a tensor twice, or a file that is
 * not in `listed`. Its memory does not grow with the number of experts per layer.
 */
export const scanIndex = (of: string, listed: ReadonlySet<string>): Sink<WeightIndex> => {
  const fail = (what: string): never => {
    throw new Unreadable({ reason: `${of} ${what}.` })
  }
  const files = new Map<string, Placed>()
  const names = new TensorNames()
  const tensorName = new TensorName()
  let tensors = 0
  let kinds = 0
  let inMap = false
  let hasMap = false
  let inMetadata = false
  let inTotal = false
  let totalBytes: number | null = null
  let tensor = ""

  const place = (file: string) => {
    let placed = files.get(file)
    if (placed === undefined) {
      if (!listed.has(file)) return fail("names files that do not lie beside it")
      if (files.size === maxShards) return fail(`names more than ${maxShards} weight files`)
      placed = { number: files.size + 1, tensors: 0, nameBytes: 0, groups: new TensorGroups() }
      files.set(file, placed)
    }
    if (!tensorName.read(tensor)) return fail("names a tensor in characters that no engine takes")
    if (++tensors > maxTensors) return fail(`names more than ${maxTensors} tensors`)
    if (!names.place(tensorName, placed.number)) return fail("names something twice")
    placed.tensors++
    placed.nameBytes += tensor.length
    const { size } = placed.groups
    placed.groups.add(tensorName, "", [], 0)
    if (placed.groups.size > size && ++kinds > maxKinds) fail("names more kinds of tensors than any model has")
  }

  const scanner = new JsonScanner(of, {
    ignores: (depth) => depth > 2 || (depth === 2 && !inMap && !inMetadata),
    begin: (kind, depth) => {
      if (depth === 0 && kind === "list") fail("is not a JSON object")
      if (depth === 1 && inMap && kind === "list") fail("has no map from tensors to files")
      if (depth >= 2 && inMap) fail("has no map from tensors to files")
    },
    end: (depth) => {
      if (depth === 1) inMap = false
    },
    name: (name, depth) => {
      if (depth === 1) {
        inMap = name === "weight_map"
        inMetadata = name === "metadata"
        if (inMap && hasMap) fail("names something twice")
        hasMap ||= inMap
      } else if (depth === 2 && inMap) tensor = name
      inTotal = depth === 2 && inMetadata && name === "total_size"
    },
    value: (value, depth) => {
      if (depth === 0) fail("is not a JSON object")
      if (inTotal && value instanceof JsonNumber && Number.isSafeInteger(value.value)) totalBytes = value.value
      if (!inMap) return
      if (depth === 1 || typeof value !== "string") return fail("has no map from tensors to files")
      place(value)
    }
  })

  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      if (!hasMap) fail("has no map from tensors to files")
      if (files.size === 0) fail("names no tensor")
      return { files, names, totalBytes }
    }
  }
}
