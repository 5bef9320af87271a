import com.fasterxml.jackson.annotation.JsonAutoDetect;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.databind.DeserializationConfig;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.deser.BeanDeserializerBase;
import com.fasterxml.jackson.databind.deser.BeanDeserializerFactory;
import com.fasterxml.jackson.databind.deser.DefaultDeserializationContext;
import com.fasterxml.jackson.databind.deser.SettableBeanProperty;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Asks OpenCGA's own configuration classes: a question in JSON on each line of stdin, an answer in JSON on each of stdout.
 *
 * <p>{"type": CLASS, "text": FILE} has the class load a file, and tells {"said": what it holds then} or {"error": why it
 * does not take it}. {"type": CLASS} tells {"said": the keys that it knows}.
 */
public final class Product {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final int DEEPEST = 3; // of samples
    /** Of fields, as some getters compute, and fail where there is nothing to compute with. */
    private static final ObjectMapper HELD = new ObjectMapper()
        .setVisibility(PropertyAccessor.GETTER, JsonAutoDetect.Visibility.NONE)
        .setVisibility(PropertyAccessor.IS_GETTER, JsonAutoDetect.Visibility.NONE)
        .setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);

    private Product() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // what the classes print is no answer
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            JsonNode question = MAPPER.readTree(line);
            Class<?> type = Class.forName(question.get("type").asText());
            Map<String, Object> answer = new TreeMap<>();
            try {
                answer.put("said", question.has("text") ? loaded(type, question.get("text").asText()) : known(type));
            } catch (InvocationTargetException error) {
                answer.put("error", String.valueOf(error.getCause()));
            }
            answers.write(HELD.writeValueAsBytes(answer));
            answers.println();
            answers.flush();
        }
    }

    private static Object loaded(Class<?> type, String text) throws Exception {
        InputStream in = new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
        return type.getMethod("load", InputStream.class).invoke(null, in);
    }

    private static Object known(Class<?> type) throws Exception {
        return keys(MAPPER.constructType(type), new ArrayDeque<>());
    }

    /**
     * Of an object its keys, of a map "*", of a single value none; true where anything may stand, and false of a key that is
     * taken and not kept. Lists are as what is in them.
     */
    private static Object keys(JavaType type, Deque<Class<?>> inside) throws Exception {
        Map<String, Object> made = new TreeMap<>();
        if (type.isMapLikeType()) {
            made.put("*", type.getContentType() == null ? true : keys(type.getContentType(), inside));
            return made.get("*").equals(true) ? true : made;
        }
        if (type.isCollectionLikeType() || type.isArrayType()) {
            return keys(type.getContentType(), inside);
        }
        if (type.getRawClass() == Object.class || inside.contains(type.getRawClass())) {
            return true;
        }
        if (deserializer(type) instanceof BeanDeserializerBase) {
            inside.push(type.getRawClass());
            Iterator<SettableBeanProperty> found = ((BeanDeserializerBase) deserializer(type)).properties();
            while (found.hasNext()) {
                SettableBeanProperty each = found.next();
                made.put(each.getName(), isKept(type, each) ? keys(each.getType(), inside) : false);
            }
            inside.pop();
        }
        return made;
    }

    /** Whether an object holds anything else once that key is set, to whatever. */
    private static boolean isKept(JavaType type, SettableBeanProperty property) throws Exception {
        String without = HELD.writeValueAsString(MAPPER.readValue("{}", type));
        for (Object sample : samples(property.getType(), 0)) {
            String text = MAPPER.writeValueAsString(Map.of(property.getName(), sample));
            try {
                if (!HELD.writeValueAsString(MAPPER.readValue(text, type)).equals(without)) {
                    return true;
                }
            } catch (JsonMappingException error) {
                return true; // it is looked at, at least
            }
        }
        return false;
    }

    private static List<Object> samples(JavaType type, int depth) throws Exception {
        Class<?> raw = type.getRawClass();
        List<Object> made = new ArrayList<>();
        if (depth > DEEPEST) {
            return made;
        }
        if (type.isEnumType()) {
            made.addAll(List.of(raw.getEnumConstants()));
        } else if (raw == boolean.class || raw == Boolean.class) {
            made.addAll(List.of(true, false));
        } else if (type.isPrimitive() || Number.class.isAssignableFrom(raw)) {
            made.addAll(List.of(4711, 4712));
        } else if (type.isCollectionLikeType() || type.isArrayType()) {
            for (Object each : samples(type.getContentType(), depth + 1)) {
                made.add(List.of(each));
            }
        } else if (type.isMapLikeType()) {
            for (Object each : samples(type.getContentType(), depth + 1)) {
                made.add(Map.of("any", each));
            }
        } else if (deserializer(type) instanceof BeanDeserializerBase) {
            made.add(Map.of());
            Iterator<SettableBeanProperty> found = ((BeanDeserializerBase) deserializer(type)).properties();
            while (found.hasNext()) {
                SettableBeanProperty each = found.next();
                for (Object value : samples(each.getType(), depth + 1)) {
                    made.add(Map.of(each.getName(), value));
                }
            }
        } else {
            made.add("any");
        }
        return made;
    }

    private static JsonDeserializer<?> deserializer(JavaType type) throws Exception {
        DeserializationConfig config = MAPPER.getDeserializationConfig();
        return new DefaultDeserializationContext.Impl(BeanDeserializerFactory.instance)
            .createInstance(config, MAPPER.createParser("{}"), null)
            .findRootValueDeserializer(type);
    }
}
