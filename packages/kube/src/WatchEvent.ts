import { Data } from "effect"

/** What a list-and-watch tells: a full list (at the start, and after every gap), then single changes. */
export type WatchEvent<A> = Data.TaggedEnum<{
  Synced: { readonly items: ReadonlyArray<A> }
  Changed: { readonly object: A }
  Removed: { readonly object: A }
}>

interface WatchEventDefinition extends Data.TaggedEnum.WithGenerics<1> {
  readonly taggedEnum: WatchEvent<this["A"]>
}

export const WatchEvent = Data.taggedEnum<WatchEventDefinition>()
