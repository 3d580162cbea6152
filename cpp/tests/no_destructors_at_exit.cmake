# Fails where a library has an object that is destroyed as its thread or the process ends: threads of the library, and
# destructors of the application, may use it later. cmake -DNM=nm -DLIBRARIES=a,b -P no_destructors_at_exit.cmake
string(REPLACE "," ";" libraries "${LIBRARIES}")
foreach(library IN LISTS libraries)
  execute_process(COMMAND ${NM} --print-file-name --undefined-only ${library} OUTPUT_VARIABLE symbols
      ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]* __cxa_(thread_)?atexit[^\n]*" found "${symbols}")
  if(found)
    message(FATAL_ERROR "destroyed as the process or a thread ends, make it `*new`, or of `PerThread`:\n${found}")
  endif()
endforeach()
