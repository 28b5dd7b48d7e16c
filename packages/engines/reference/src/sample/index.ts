export { encodeSafetensors, type NamedTensor } from "./SafetensorsFile.ts"
export { makeTinyChat, type TinyChatOptions, writeTinyChat } from "./TinyChat.ts"
