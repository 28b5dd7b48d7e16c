import { Data } from "effect"

/** An object that is there but does not match its schema, so that nothing is known of it but which one it is. */
export interface Unreadable {
  /** See `keyOf`. */
  readonly key: string
  readonly uid: string | undefined
}

/** What a list-and-watch tells: a full list (at the start, and after every gap), then single changes. A change that cannot be read is logged and not told. */
export type WatchEvent<A> = Data.TaggedEnum<{
  /** `unreadable`: what is in the list too, though not among `items`: it has not gone. */
  Synced: { readonly items: ReadonlyArray<A>; readonly unreadable?: ReadonlyArray<Unreadable> }
  Changed: { readonly object: A }
  Removed: { readonly object: A }
  /** What went could not be read any more. */
  RemovedUnreadable: Unreadable
}>

interface WatchEventDefinition extends Data.TaggedEnum.WithGenerics<1> {
  readonly taggedEnum: WatchEvent<this["A"]>
}

export const WatchEvent = Data.taggedEnum<WatchEventDefinition>()
