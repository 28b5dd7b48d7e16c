export { encodeSafetensors, type NamedTensor } from "./SafetensorsFile.ts"
export { makeTinyAdapter, type TinyAdapterOptions, tinyAdapterTensors } from "./TinyAdapter.ts"
export { makeTinyChat, type TinyChatOptions, writeTinyChat } from "./TinyChat.ts"
