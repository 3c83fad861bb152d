import java.io.FileReader;
import java.io.PrintStream;
import java.io.Reader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.Vector;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.LongSupplier;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.Utils;
import site.ycsb.generator.AcknowledgedCounterGenerator;
import site.ycsb.generator.CounterGenerator;
import site.ycsb.generator.DiscreteGenerator;
import site.ycsb.generator.ExponentialGenerator;
import site.ycsb.generator.HistogramGenerator;
import site.ycsb.generator.HotspotIntegerGenerator;
import site.ycsb.generator.ScrambledZipfianGenerator;
import site.ycsb.generator.SequentialGenerator;
import site.ycsb.generator.SkewedLatestGenerator;
import site.ycsb.generator.UniformLongGenerator;
import site.ycsb.generator.ZipfianGenerator;
import site.ycsb.measurements.Measurements;
import site.ycsb.workloads.CoreWorkload;

/**
 * Writes what the generators and the core workload of the original YCSB draw from known seeds, for the tests of this
 * crate. `make.sh` compiles and runs it.
 *
 * All draws happen in a thread whose id is 0, because Java 17 adds twice the id of the thread to every step of its
 * thread-local generator; the seed is set by reflection just before the draws of a case.
 */
public final class Vectors {
  private static final int SHOWN = 100;
  private static final int SUMMED = 200_000;

  private static PrintStream out;
  private static Field seedField;

  public static void main(String[] args) throws Exception {
    seedField = Thread.class.getDeclaredField("threadLocalRandomSeed");
    seedField.setAccessible(true);
    final Exception[] failed = new Exception[1];
    Thread thread = new Thread() {
      @Override
      public long getId() {
        return 0;
      }

      @Override
      public void run() {
        try {
          ThreadLocalRandom.current();
          write(args[0]);
        } catch (Exception e) {
          failed[0] = e;
        }
      }
    };
    thread.start();
    thread.join();
    if (failed[0] != null) {
      throw failed[0];
    }
  }

  private static void write(String folder) throws Exception {
    Measurements.setProperties(new Properties());
    open(folder, "generators.txt");
    random();
    generators();
    out.close();
    open(folder, "keys.txt");
    keys();
    out.close();
    open(folder, "traces.txt");
    traces();
    out.close();
    open(folder, "properties.txt");
    properties(folder);
    out.close();
    open(folder, "numbers.txt");
    numbers();
    out.close();
    outputs(folder);
  }

  private static void open(String folder, String name) throws Exception {
    out = new PrintStream(folder + "/" + name, "UTF-8");
    out.println("# Written by vectors/make.sh (Vectors.java) with site.ycsb:core:0.17.0 on Java "
        + System.getProperty("java.version") + ". Not by hand.");
  }

  private static void seed(long seed) throws Exception {
    seedField.setLong(Thread.currentThread(), seed);
  }

  private static String bits(double value) {
    return String.format(Locale.ROOT, "%016x", Double.doubleToRawLongBits(value));
  }

  /** The first values, and a sum in order over many. */
  private static void draw(long seed, LongSupplier next) throws Exception {
    draw(seed, next, SUMMED);
  }

  private static void draw(long seed, LongSupplier next, int summed) throws Exception {
    out.println("seed=" + seed);
    seed(seed);
    StringBuilder shown = new StringBuilder();
    long sum = 0;
    for (int i = 0; i < summed; i++) {
      long value = next.getAsLong();
      if (i < SHOWN) {
        shown.append(i == 0 ? "" : " ").append(value);
      }
      sum = sum * 6364136223846793005L + value;
    }
    out.println("values=" + shown);
    out.println("count=" + summed);
    out.println("sum=" + String.format("%016x", sum));
  }

  private static void random() throws Exception {
    for (long seed : new long[] {0, 1, -1, 0x123456789abcdefL}) {
      out.println("[random long]");
      draw(seed, () -> ThreadLocalRandom.current().nextLong());
      out.println("[random int]");
      draw(seed, () -> ThreadLocalRandom.current().nextInt());
      out.println("[random double bits]");
      draw(seed, () -> Double.doubleToRawLongBits(ThreadLocalRandom.current().nextDouble()));
    }
    for (int bound : new int[] {1, 2, 3, 10, 1000, 1 << 20, (1 << 30) + 1, Integer.MAX_VALUE}) {
      out.println("[random bounded]");
      out.println("bound=" + bound);
      draw(7, () -> ThreadLocalRandom.current().nextInt(bound));
    }
  }

  private static double inside(Object generator, String name) throws Exception {
    Field field = ZipfianGenerator.class.getDeclaredField(name);
    field.setAccessible(true);
    return field.getDouble(generator);
  }

  private static void constants(ZipfianGenerator zipfian) throws Exception {
    for (String name : new String[] {"alpha", "zetan", "eta", "zeta2theta"}) {
      out.println(name + "=" + bits(inside(zipfian, name)));
    }
  }

  private static void generators() throws Exception {
    long[][] ranges = {{0, 0}, {0, 1}, {1, 100}, {0, 999}, {500, 1_000_499}, {0, Integer.MAX_VALUE}, {0, 1L << 40}};
    for (long[] range : ranges) {
      out.println("[uniform]");
      out.println("min=" + range[0] + "\nmax=" + range[1]);
      UniformLongGenerator uniform = new UniformLongGenerator(range[0], range[1]);
      draw(11, () -> uniform.nextValue());
    }
    for (long[] range : new long[][] {{0, 1}, {0, 9}, {1, 100}, {1, 1000}, {0, 999}, {0, 99_999}, {1000, 1_000_999}}) {
      out.println("[zipfian]");
      out.println("min=" + range[0] + "\nmax=" + range[1]);
      ZipfianGenerator zipfian = new ZipfianGenerator(range[0], range[1]);
      constants(zipfian);
      draw(12, () -> zipfian.nextValue());
    }
    Method grow = ZipfianGenerator.class.getDeclaredMethod("nextLong", long.class);
    grow.setAccessible(true);
    for (long items : new long[] {10, 1000, 100_000}) {
      out.println("[zipfian growing]");
      out.println("items=" + items);
      ZipfianGenerator zipfian = new ZipfianGenerator(items);
      long[] count = {items};
      draw(13, () -> {
        try {
          // Grows by one, two and three, and now and then looks back.
          count[0] += count[0] % 3 == 0 ? 2 : 1;
          return (Long) grow.invoke(zipfian, count[0] % 5 == 0 ? count[0] - 3 : count[0]);
        } catch (ReflectiveOperationException e) {
          throw new IllegalStateException(e);
        }
      }, 20_000);
      constants(zipfian);
    }
    for (long[] range : new long[][] {{0, 999}, {0, 1000}, {0, 999_999}, {1000, 1_000_999}, {0, 1_000_000_000L}}) {
      out.println("[scrambled]");
      out.println("min=" + range[0] + "\nmax=" + range[1]);
      ScrambledZipfianGenerator scrambled = new ScrambledZipfianGenerator(range[0], range[1]);
      Field inner = ScrambledZipfianGenerator.class.getDeclaredField("gen");
      inner.setAccessible(true);
      constants((ZipfianGenerator) inner.get(scrambled));
      draw(14, () -> scrambled.nextValue(), 1_000_000);
    }
    out.println("[scrambled top]");
    ScrambledZipfianGenerator top = new ScrambledZipfianGenerator(0, 999_999);
    Map<Long, Integer> hits = new HashMap<>();
    seed(15);
    for (int i = 0; i < 1_000_000; i++) {
      hits.merge(top.nextValue(), 1, Integer::sum);
    }
    TreeSet<Map.Entry<Long, Integer>> order = new TreeSet<>((a, b) -> a.getValue().equals(b.getValue())
        ? Long.compare(a.getKey(), b.getKey()) : Integer.compare(b.getValue(), a.getValue()));
    order.addAll(hits.entrySet());
    StringBuilder best = new StringBuilder();
    int places = 0;
    for (Map.Entry<Long, Integer> hit : order) {
      if (places++ == 10) {
        break;
      }
      best.append(places == 1 ? "" : " ").append(hit.getKey()).append(" ").append(hit.getValue());
    }
    out.println("seed=15\ncount=1000000\nvalues=" + best + "\ndistinct=" + hits.size());
    for (long records : new long[] {2, 100, 10_000}) {
      out.println("[latest]");
      out.println("records=" + records);
      CounterGenerator counter = new CounterGenerator(records);
      SkewedLatestGenerator latest = new SkewedLatestGenerator(counter);
      int[] round = {0};
      draw(16, () -> {
        // A new record before every third draw.
        if (round[0]++ % 3 == 0) {
          counter.nextValue();
        }
        return latest.nextValue();
      }, 20_000);
    }
    for (double[] set : new double[][] {{0, 999, 0.2, 0.8}, {100, 1_000_099, 0.01, 0.5}, {0, 99, 1.0, 1.0}, {0, 9, 0.3, 0.0}}) {
      out.println("[hotspot]");
      out.println("min=" + (long) set[0] + "\nmax=" + (long) set[1] + "\ndata=" + set[2] + "\nopn=" + set[3]);
      HotspotIntegerGenerator hotspot = new HotspotIntegerGenerator((long) set[0], (long) set[1], set[2], set[3]);
      draw(17, () -> hotspot.nextValue());
    }
    for (double[] set : new double[][] {{95, 857.1428571}, {95, 1_000_000 * 0.8571428571}, {50, 10}, {99.9, 1e9}}) {
      out.println("[exponential]");
      out.println("percentile=" + set[0] + "\nrange=" + set[1]);
      ExponentialGenerator exponential = new ExponentialGenerator(set[0], set[1]);
      draw(18, () -> exponential.nextValue().intValue());
      out.println("[exponential bits]");
      out.println("percentile=" + set[0] + "\nrange=" + set[1]);
      draw(18, () -> Double.doubleToRawLongBits(exponential.nextValue()));
    }
    for (long[] range : new long[][] {{0, 0}, {0, 9}, {50, 149}}) {
      out.println("[sequential]");
      out.println("min=" + range[0] + "\nmax=" + range[1]);
      SequentialGenerator sequential = new SequentialGenerator(range[0], range[1]);
      draw(0, () -> sequential.nextValue().longValue(), 1000);
    }
    out.println("[counter]");
    out.println("start=1000");
    CounterGenerator counter = new CounterGenerator(1000);
    draw(0, () -> counter.nextValue() + 1_000_000 * counter.lastValue(), 1000);
    acknowledged();
    String[][] mixes = {{"READ", "0.5", "UPDATE", "0.5"}, {"READ", "0.95", "INSERT", "0.05"},
        {"A", "0.1", "B", "0.2", "C", "0.3", "D", "0.25", "E", "0.15"}, {"A", "3", "B", "1", "C", "7"}, {"A", "1.0"}};
    for (String[] mix : mixes) {
      out.println("[discrete]");
      DiscreteGenerator discrete = new DiscreteGenerator();
      TreeMap<String, Integer> place = new TreeMap<>();
      StringBuilder weights = new StringBuilder();
      for (int i = 0; i < mix.length; i += 2) {
        discrete.addValue(Double.parseDouble(mix[i + 1]), mix[i]);
        place.put(mix[i], i / 2);
        weights.append(i == 0 ? "" : " ").append(mix[i + 1]);
      }
      out.println("weights=" + weights);
      draw(19, () -> place.get(discrete.nextValue()));
    }
    long[][] histograms = {{10, 1, 2, 3, 4}, {1, 0, 0, 5}, {100, 7}, {4, 100, 0, 0, 1, 900, 3}};
    for (long[] histogram : histograms) {
      out.println("[histogram]");
      long[] buckets = new long[histogram.length - 1];
      System.arraycopy(histogram, 1, buckets, 0, buckets.length);
      StringBuilder shown = new StringBuilder();
      for (long bucket : buckets) {
        shown.append(shown.length() == 0 ? "" : " ").append(bucket);
      }
      out.println("block=" + histogram[0] + "\nbuckets=" + shown);
      HistogramGenerator generator = new HistogramGenerator(buckets, (int) histogram[0]);
      draw(20, () -> generator.nextValue());
    }
  }

  /** Keys are taken in order and acknowledged in disorder; the value after each acknowledgement is the limit. */
  private static void acknowledged() throws Exception {
    out.println("[acknowledged]");
    out.println("start=1000");
    AcknowledgedCounterGenerator counter = new AcknowledgedCounterGenerator(1000);
    long[] waiting = new long[16];
    for (int i = 0; i < waiting.length; i++) {
      waiting[i] = counter.nextValue();
    }
    draw(21, () -> {
      int place = ThreadLocalRandom.current().nextInt(waiting.length);
      counter.acknowledge(waiting[place]);
      waiting[place] = counter.nextValue();
      return counter.lastValue();
    });
  }

  private static void keys() throws Exception {
    out.println("[fnv]");
    draw(22, () -> Utils.fnvhash64(ThreadLocalRandom.current().nextLong()));
    StringBuilder small = new StringBuilder();
    for (long n = 0; n < 20; n++) {
      small.append(n == 0 ? "" : " ").append(Utils.fnvhash64(n));
    }
    out.println("[fnv small]");
    out.println("values=" + small);
    for (String order : new String[] {"hashed", "ordered"}) {
      for (int padding : new int[] {1, 0, 8, 22}) {
        Properties set = new Properties();
        set.setProperty("insertorder", order);
        set.setProperty("zeropadding", "" + padding);
        set.setProperty("recordcount", "1000");
        CoreWorkload workload = new CoreWorkload();
        workload.init(set);
        Method build = CoreWorkload.class.getDeclaredMethod("buildKeyName", long.class);
        build.setAccessible(true);
        out.println("[keys]");
        out.println("insertorder=" + order + "\nzeropadding=" + padding);
        for (long n : new long[] {0, 1, 9, 10, 99, 12345, 1_000_000, 123_456_789_012L}) {
          out.println(n + "=" + build.invoke(workload, n));
        }
      }
    }
    for (int length : new int[] {1, 5, 12, 13, 20, 100, 1000}) {
      Properties set = new Properties();
      set.setProperty("dataintegrity", "true");
      set.setProperty("fieldlength", "" + length);
      CoreWorkload workload = new CoreWorkload();
      workload.init(set);
      Method build = CoreWorkload.class.getDeclaredMethod("buildDeterministicValue", String.class, String.class);
      build.setAccessible(true);
      out.println("[integrity]");
      out.println("fieldlength=" + length);
      for (String key : new String[] {"user1", "user6284781860667377211"}) {
        for (String field : new String[] {"field0", "field9"}) {
          out.println(key + " " + field + "=" + build.invoke(workload, key, field));
        }
      }
    }
  }

  /** A store that writes down what it is asked for. */
  private static final class Scribe extends DB {
    private final StringBuilder line = new StringBuilder();
    private final int fieldcount;

    private Scribe(int fieldcount) {
      this.fieldcount = fieldcount;
    }

    private String take() {
      String text = line.toString();
      line.setLength(0);
      return text;
    }

    private Status note(String kind, String key, String what, Set<String> fields) {
      line.append(line.length() == 0 ? "" : "; ").append(kind).append(' ').append(key).append(what).append(' ');
      line.append(fields == null || fields.size() == fieldcount ? "*" : String.join(",", new TreeSet<>(fields)));
      return Status.OK;
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
      return note("READ", key, "", fields);
    }

    @Override
    public Status scan(String table, String key, int count, Set<String> fields,
        Vector<HashMap<String, ByteIterator>> result) {
      return note("SCAN", key, " " + count, fields);
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
      return note("UPDATE", key, "", values.keySet());
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
      return note("INSERT", key, "", values.keySet());
    }

    @Override
    public Status delete(String table, String key) {
      return Status.NOT_IMPLEMENTED;
    }
  }

  private static void traces() throws Exception {
    String mix = " operationcount=100000";
    String[] sets = {
        "readproportion=0.5 updateproportion=0.5 requestdistribution=zipfian recordcount=1000" + mix,
        "readproportion=0.95 updateproportion=0.05 requestdistribution=zipfian recordcount=1000" + mix,
        "readproportion=1 updateproportion=0 requestdistribution=zipfian recordcount=1000000" + mix,
        "readproportion=0.95 updateproportion=0 insertproportion=0.05 requestdistribution=latest recordcount=1000" + mix,
        "readproportion=0 updateproportion=0 scanproportion=0.95 insertproportion=0.05 requestdistribution=zipfian"
            + " maxscanlength=100 scanlengthdistribution=uniform recordcount=1000" + mix,
        "readproportion=0.5 updateproportion=0 readmodifywriteproportion=0.5 requestdistribution=zipfian"
            + " recordcount=1000" + mix,
        "recordcount=1000" + mix,
        "readallfields=false recordcount=1000 requestdistribution=zipfian readproportion=0.4 updateproportion=0.3"
            + " scanproportion=0.2 readmodifywriteproportion=0.1" + mix,
        "writeallfields=true recordcount=500 requestdistribution=uniform readproportion=0.1 updateproportion=0.4"
            + " readmodifywriteproportion=0.5" + mix,
        "requestdistribution=hotspot hotspotdatafraction=0.1 hotspotopnfraction=0.9 recordcount=20000" + mix,
        "requestdistribution=hotspot insertstart=1000 insertcount=500 recordcount=2000 insertorder=ordered" + mix,
        "requestdistribution=zipfian insertstart=1000 insertcount=500 recordcount=2000 insertproportion=0.3"
            + " readproportion=0.7 updateproportion=0" + mix,
        "insertorder=ordered zeropadding=12 requestdistribution=sequential recordcount=100 insertstart=10" + mix,
        "requestdistribution=exponential recordcount=10000 insertproportion=0.1 readproportion=0.9" + mix,
        "requestdistribution=exponential exponential.percentile=50 exponential.frac=0.1 recordcount=300" + mix,
        "scanproportion=1 readproportion=0 updateproportion=0 scanlengthdistribution=zipfian minscanlength=5"
            + " maxscanlength=50 recordcount=1000 readallfields=false fieldcount=3 fieldnameprefix=f" + mix,
        "fieldcount=1 writeallfields=true readproportion=1 updateproportion=2 insertproportion=3 recordcount=50"
            + " requestdistribution=latest" + mix,
    };
    for (String set : sets) {
      Properties properties = new Properties();
      for (String pair : set.split(" ")) {
        String[] parts = pair.split("=");
        properties.setProperty(parts[0], parts[1]);
      }
      // Values that can be checked draw nothing: what is left are the draws of operations.
      properties.setProperty("dataintegrity", "true");
      CoreWorkload workload = new CoreWorkload();
      workload.init(properties);
      Scribe scribe = new Scribe(Integer.parseInt(properties.getProperty("fieldcount", "10")));
      out.println("[trace]");
      out.println("set=" + set);
      out.println("seed=23");
      seed(23);
      long sum = 0;
      int transactions = 20_000;
      for (int i = 0; i < transactions; i++) {
        workload.doTransaction(scribe, null);
        String line = scribe.take();
        if (i < 60) {
          out.println("-" + line);
        }
        for (byte b : line.getBytes("UTF-8")) {
          sum = sum * 6364136223846793005L + b;
        }
      }
      out.println("count=" + transactions);
      out.println("sum=" + String.format("%016x", sum));
    }
  }

  private static String escaped(String text) {
    StringBuilder shown = new StringBuilder();
    for (char c : text.toCharArray()) {
      shown.append(c > ' ' && c < 127 && c != '\\' && c != '=' ? "" + c : String.format("\\u%04x", (int) c));
    }
    return shown.toString();
  }

  private static void properties(String folder) throws Exception {
    Properties set = new Properties();
    try (Reader reader = new FileReader(folder + "/syntax.properties", java.nio.charset.StandardCharsets.ISO_8859_1)) {
      set.load(reader);
    }
    out.println("[syntax]");
    for (String name : new TreeSet<>(set.stringPropertyNames())) {
      out.println(escaped(name) + "=" + escaped(set.getProperty(name)));
    }
  }

  private static void numbers() throws Exception {
    out.println("[double]");
    double[] doubles = {0, 1, -1, 0.5, 0.1, 1.0 / 3, 100, 1e6, 9999999, 1e7, 12345678.9, 1e-3, 0.00099, 5.915747764946143E-4,
        28571.428571428572, 1344537.8151260505, 1e21, 1e22, 123456789012345680.0, 4.0186363427343653E-4};
    for (double value : doubles) {
      out.println(bits(value) + "=" + value);
    }
    out.println("[short]");
    for (double value : new double[] {0, 0.04, 0.005, 0.015, 0.5, 1, 1.5, 2.446, 73605, 1570984.126, 3652819.41, 0.125, 0.375, 1e9}) {
      out.println(bits(value) + "=" + new java.text.DecimalFormat("#.##", new java.text.DecimalFormatSymbols(Locale.ROOT)).format(value));
    }
    out.println("[remaining]");
    Class<?> formatter = Class.forName("site.ycsb.RemainingFormatter");
    Method format = formatter.getDeclaredMethod("format", long.class);
    format.setAccessible(true);
    for (long seconds : new long[] {0, 1, 2, 59, 60, 61, 119, 120, 3599, 3600, 3661, 7322, 86399, 86400, 90061, 200000}) {
      out.println(seconds + "=" + format.invoke(null, seconds) + "|");
    }
  }

  /** What the original prints of times that `report/tests.rs` knows, too. */
  private static void outputs(String folder) throws Exception {
    String[][] sets = {
        {"hdr", "TextMeasurementsExporter", "measurement.interval", "both", "hdrhistogram.percentiles", "50,95,99,99.9"},
        {"hdr-verbose", "TextMeasurementsExporter", "measurement.histogram.verbose", "true"},
        {"hdr-json", "JSONMeasurementsExporter"},
        {"hdr-array", "JSONArrayMeasurementsExporter"},
        {"intended", "TextMeasurementsExporter", "measurement.interval", "intended"},
        {"buckets", "TextMeasurementsExporter", "measurementtype", "histogram", "histogram.buckets", "5"},
        {"buckets-verbose", "TextMeasurementsExporter", "measurementtype", "histogram", "histogram.buckets", "5",
            "measurement.histogram.verbose", "true"},
        {"two", "TextMeasurementsExporter", "measurementtype", "hdrhistogram+histogram"},
        {"raw", "TextMeasurementsExporter", "measurementtype", "raw"},
        {"raw-no-summary", "TextMeasurementsExporter", "measurementtype", "raw", "measurement.raw.no_summary", "true"},
        {"hdr-and-raw", "TextMeasurementsExporter", "measurementtype", "hdrhistogram+raw", "measurement.interval", "both"},
    };
    for (String[] set : sets) {
      Properties properties = new Properties();
      for (int i = 2; i < set.length; i += 2) {
        properties.setProperty(set[i], set[i + 1]);
      }
      Path raw = Files.createTempFile("raw", ".csv");
      properties.setProperty("measurement.raw.output_file", raw.toString());
      Path logs = Files.createTempDirectory("logs");
      properties.setProperty("hdrhistogram.fileoutput", "" + set[0].equals("hdr"));
      properties.setProperty("hdrhistogram.output.path", logs + "/");
      Field singleton = Measurements.class.getDeclaredField("singleton");
      singleton.setAccessible(true);
      singleton.set(null, null);
      Measurements.setProperties(properties);
      Measurements measurements = Measurements.getMeasurements();
      long unit = set[0].startsWith("buckets") ? 1000 : 1;
      String[] names = {"READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE", "VERIFY"};
      for (int place = 0; place < names.length; place++) {
        String name = names[place];
        for (int i = 0; i < 500 * (place + 1); i++) {
          int micros = (int) (i * 7919L * (place + 1) % 450 % (unit == 1 ? 450 : 8) * unit);
          measurements.measure(name, micros);
          if (!name.equals("VERIFY")) {
            measurements.measureIntended(name, 2 * micros);
          }
          if (!name.equals("READ-MODIFY-WRITE")) {
            measurements.reportStatus(name, Status.OK);
          }
        }
      }
      for (int i = 0; i < 50; i++) {
        measurements.measure("UPDATE-FAILED", (int) (i * unit));
        measurements.measureIntended("UPDATE-FAILED", (int) (i * unit));
        measurements.reportStatus("UPDATE", Status.ERROR);
        measurements.measure("VERIFY", 0);
        measurements.reportStatus("VERIFY", Status.UNEXPECTED_STATE);
      }
      try (java.io.FileOutputStream file = new java.io.FileOutputStream(folder + "/output-" + set[0] + ".txt")) {
        site.ycsb.measurements.exporter.MeasurementsExporter exporter =
            (site.ycsb.measurements.exporter.MeasurementsExporter) Class
                .forName("site.ycsb.measurements.exporter." + set[1])
                .getConstructor(java.io.OutputStream.class).newInstance(file);
        exporter.write("OVERALL", "RunTime(ms)", 2500L);
        exporter.write("OVERALL", "Throughput(ops/sec)", 4200.0);
        measurements.exportMeasurements(exporter);
        exporter.close();
      }
      if (set[0].equals("hdr-and-raw")) {
        singleTimes(folder, raw);
      }
      if (set[0].equals("hdr")) {
        logs(folder, logs);
      }
      Files.delete(raw);
      Files.delete(logs);
    }
  }

  /** The first single times of each metric; when they were measured is 0. */
  private static void singleTimes(String folder, Path raw) throws Exception {
    try (PrintStream file = new PrintStream(folder + "/raw-lines.txt", "UTF-8")) {
      int shown = 0;
      for (String line : Files.readAllLines(raw)) {
        shown = line.contains(":") ? 0 : shown + 1;
        if (shown <= 10) {
          file.println(line.replaceFirst(",[0-9]+,", ",0,"));
        }
      }
    }
  }

  /** The logs of histograms: first line, then values and counts of each histogram of two of them. */
  private static void logs(String folder, Path logs) throws Exception {
    try (PrintStream file = new PrintStream(folder + "/logs.txt", "UTF-8")) {
      TreeSet<String> names = new TreeSet<>(java.util.Arrays.asList(logs.toFile().list()));
      for (String name : names) {
        Path log = logs.resolve(name);
        file.println(name);
        file.println("  " + Files.readAllLines(log).get(0));
        if (name.equals("READ.hdr") || name.equals("UPDATE-FAILED.hdr")) {
          HistogramLogReader reader = new HistogramLogReader(log.toFile());
          Histogram histogram;
          while ((histogram = (Histogram) reader.nextIntervalHistogram()) != null) {
            StringBuilder line = new StringBuilder(" ");
            histogram.recordedValues().forEach(value ->
                line.append(" ").append(value.getValueIteratedTo()).append(" ").append(value.getCountAtValueIteratedTo()));
            file.println(line);
          }
        }
        Files.delete(log);
      }
    }
  }
}
