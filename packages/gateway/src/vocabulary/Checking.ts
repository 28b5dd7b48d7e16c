import { type EngineWire, type InferencePath, type ModelCapabilities, pathTraits, type SamplingDefaults } from "@seatrial/domain"
import { type ImagePlace, ImagePlaces } from "../images/ImagePlaces.ts"
import { invalidParameter, Refusal, unknownParameter, unsupportedParameter, unsupportedValue } from "../refusals.ts"

interface Gates {
  readonly fields: ReadonlySet<string>
  readonly formats: ReadonlySet<string>
}

const gates = new WeakMap<ModelCapabilities, Map<InferencePath, Gates>>()

const gatesOf = (endpoint: InferencePath, capabilities: ModelCapabilities): Gates => {
  const known = gates.get(capabilities)?.get(endpoint)
  if (known !== undefined) return known
  const computed = {
    fields: new Set(capabilities.supported_parameters_by_endpoint[endpoint]),
    formats: new Set(capabilities.supported_response_formats_by_endpoint[pathTraits[endpoint].countsFor ?? endpoint])
  }
  gates.set(capabilities, (gates.get(capabilities) ?? new Map<InferencePath, Gates>()).set(endpoint, computed))
  return computed
}

/** The properties of a route that decide which values are accepted and how they are sent to the engine. */
export interface Target {
  /** The capabilities stored with the verified revision. */
  readonly capabilities: ModelCapabilities
  /** The engine's wire behavior. */
  readonly wire: EngineWire
  /** Whether the route serves an adapter, which has another name in the engine. */
  readonly adapted: boolean
  readonly maxModelLen: number
  /** Whether the chat template supports the role `developer`. If not, such messages are sent as `system`. */
  readonly knowsDeveloper: boolean
  /** Sampling defaults of the model's repository; null if unknown. */
  readonly sampling: SamplingDefaults | null
  readonly requestId: string
  /** Separates the prefix caches of organizations; null if the engine does not support salts. */
  readonly cacheSalt: string | null
}

/** Longest part of a name and of a path in an error, in characters. */
const longestName = 128
const longestPath = 1_024

/** A path step whose name the caller chose. The record of the request contains an asterisk instead. */
export class CallerName {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}
type Step = string | number | CallerName

const stepText = (step: Step, isFirst: boolean, isRecorded: boolean): string => {
  if (typeof step === "number") return `[${step}]`
  const name = step instanceof CallerName ? (isRecorded ? "*" : step.name) : step
  return `${isFirst ? "" : "."}${name.slice(0, longestName)}`
}

/** The state of one check: the current path, the model's capabilities, and the images found. */
export class Checking {
  readonly target: Target
  /** The top-level fields that the model supports on the request's path. */
  readonly fields: ReadonlySet<string>
  /** The supported values of `response_format.type`. */
  readonly formats: ReadonlySet<string>
  /** What the JSON schemas so far contain. */
  readonly schemas = { values: 0, characters: 0 }
  readonly #path: Array<Step> = []
  #images: ImagePlaces | undefined

  constructor(endpoint: InferencePath, target: Target) {
    const { fields, formats } = gatesOf(endpoint, target.capabilities)
    this.target = target
    this.fields = fields
    this.formats = formats
  }

  /** Runs a check one step deeper. If it throws, the path still points at the refused value. */
  within<A>(step: string | number, check: (value: unknown, at: Checking) => A, value: unknown): A {
    this.#path.push(step)
    const checked = check(value, this)
    this.#path.pop()
    return checked
  }

  /** `within` for a step whose name the caller chose. */
  withinName<A>(name: string, check: (value: unknown, at: Checking) => A, value: unknown): A {
    this.#path.push(new CallerName(name))
    const checked = check(value, this)
    this.#path.pop()
    return checked
  }

  /**
   * The path of the current value, or of a value inside it. It is truncated, because a name that the caller chose may
   * be as long as the body.
   */
  param(...deeper: ReadonlyArray<string | number>): string {
    return this.#text(deeper, false)
  }

  #text(deeper: ReadonlyArray<Step>, isRecorded: boolean): string {
    return [...this.#path, ...deeper]
      .map((step, index) => stepText(step, index === 0, isRecorded))
      .join("")
      .slice(0, longestPath)
  }

  /** The images found so far. */
  get images(): ReadonlyArray<ImagePlace> {
    return this.#images?.list ?? []
  }

  /** Adds an image and returns its placeholder in the engine's body. */
  image(url: string, ...deeper: ReadonlyArray<string | number>): string {
    this.#images ??= new ImagePlaces()
    return this.#images.add(this.param(...deeper), url)
  }

  #refuse(refusal: (message: string, param: string) => Refusal, message: string, deeper: ReadonlyArray<Step>): never {
    const [param, recordedParam] = [this.#text(deeper, false), this.#text(deeper, true)]
    const refused = refusal(`${param}: ${message}.`, param)
    if (param === recordedParam) throw refused
    const { code, message: text, status, type } = refused
    throw new Refusal({ status, type, code, message: text, param, recorded: { message: `${recordedParam}: ${message}.`, param: recordedParam } })
  }

  /** The value has the wrong type or is out of range. */
  invalid(expected: string, ...deeper: ReadonlyArray<Step>): never {
    return this.#refuse(invalidParameter, expected, deeper)
  }

  /** The API has no such member. */
  unknown(name: string): never {
    return this.#refuse(unknownParameter, "is not a known field of this request", [new CallerName(name)])
  }

  /** The model does not support this field of the API. */
  unsupported(...deeper: ReadonlyArray<Step>): never {
    return this.#refuse(unsupportedParameter, "the model does not support it", deeper)
  }

  /** The model does not support this value. */
  unsupportedValue(why: string, ...deeper: ReadonlyArray<string | number>): never {
    return this.#refuse(unsupportedValue, why, deeper)
  }
}
