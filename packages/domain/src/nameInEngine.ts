import type { EngineWire } from "./engineWire.ts"

/**
 * The name of a LoRA adapter inside an engine. It is fixed because the name of the model may change while the engine
 * runs.
 */
export const adapterName = "adapter"

type Naming = Pick<EngineWire, "acceptsLeadingHyphen">

/** The name by which an engine knows a callable name of its model. */
export const nameInEngine = ({ acceptsLeadingHyphen }: Naming, model: string): string => (!acceptsLeadingHyphen && model.startsWith("-") ? "model" : model)

/**
 * The name by which an engine that serves an adapter knows a callable name of the base model. It never equals
 * `adapterName`.
 */
export const baseInEngine = (wire: Naming, model: string): string => {
  const name = nameInEngine(wire, model)
  return name === adapterName ? "base" : name
}

/**
 * The distinct names that an engine is started with. `names`: the callable names of the model. `isAdapted`: whether the
 * engine also serves an adapter as `adapterName`.
 */
export const servedNames = (wire: Naming, names: ReadonlyArray<string>, isAdapted: boolean): ReadonlyArray<string> => [
  ...new Set(names.map((name) => (isAdapted ? baseInEngine(wire, name) : nameInEngine(wire, name))))
]
